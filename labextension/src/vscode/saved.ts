/** What the renderer of ranks' output is given where there is no server: it shows what a notebook has saved. */
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Contributions } from '../model/contributions';
import { plainOutputs } from '../model/outputs/liveoutputs';
import { savedParts } from '../parts/saved';
import type { IDistExecutions, IDistGroups, IHeaderNotes, IOutputAction, IOutputTabs } from '../tokens';
import type { IRanksRendererOptions } from '../widgets/rankoutput/options';

/** Nothing is followed, no group is known, and so no button is shown that would need one. */
export function savedOptions(rendermime: IRenderMimeRegistry): IRanksRendererOptions {
  const silent = <T, V>(): Signal<T, V> => new Signal<T, V>({} as T);
  const none = async (): Promise<never> => {
    throw new Error('There is no server here.');
  };
  const nothing = (): void => undefined;
  const executions: Partial<IDistExecutions> = { followed: silent(), find: () => null, isOwn: () => false };
  const groups: Partial<IDistGroups> = {
    groups: [],
    connected: true,
    changed: silent(),
    clock: { now: () => Date.now() / 1000 },
    find: () => null
  } as unknown as IDistGroups;
  const trans = nullTranslator.load('jupyter_dist');
  const outputTabs = new Contributions<IOutputTabs>();
  const headerNotes = new Contributions<IHeaderNotes>();
  savedParts.forEach(add => add({ tabs: outputTabs, notes: headerNotes }, trans));
  return {
    rendermime,
    executions: executions as IDistExecutions,
    groups: groups as IDistGroups,
    live: plainOutputs(rendermime),
    actions: new Contributions<IOutputAction>(),
    headerNotes,
    outputTabs,
    trans,
    isConnected: () => true,
    groupOf: () => null,
    waitsFor: () => null,
    isBehindOwn: () => false,
    stopOf: () => null,
    notesOf: () => [],
    condenses: () => true,
    showsHeaders: () => false,
    answer: none,
    openLog: nothing,
    openLine: nothing,
    killRank: nothing,
    replace: nothing
  };
}
