/** What the renderer of ranks' output is given: the models that it shows, and what its buttons do. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Awaited } from '../../model/executions/waiting';
import type { ILiveOutputs } from '../../model/outputs/liveoutputs';
import type { IExecution, IInputRequest } from '../../services/protocol';
import type {
  IDistExecutions,
  IDistGroups,
  IDistHeaderNotes,
  IDistOutputActions,
  IDistOutputTabs,
  INoteContext
} from '../../tokens';
import type { IRankNote } from './notes/ranknotes';
import type { ICellStop } from './header/stops';

export interface IRanksRendererOptions extends Omit<INoteContext, 'redraw'> {
  rendermime: IRenderMimeRegistry;
  /** The live outputs of the notebook. */
  live: ILiveOutputs;
  executions: IDistExecutions;
  trans: TranslationBundle;
  /** What other extensions add. */
  actions: IDistOutputActions;
  /** The notes of parts in the header. */
  headerNotes: IDistHeaderNotes;
  /** The tabs of parts. */
  outputTabs: IDistOutputTabs;
  openLog(group: string, rank: number): void;
  /** Whether the server is connected. */
  isConnected(): boolean;
  /** The group that the notebook of an element runs on; null: its kernel chooses one; undefined: it is in no notebook. */
  groupOf(node: HTMLElement): string | null | undefined;
  /** What a queued execution waits for. */
  waitsFor(execution: IExecution): Awaited | null;
  /** Whether an earlier cell of its notebook waits for the same. */
  isBehindOwn(execution: IExecution): boolean;
  /** Where JupyterLab's debugger has stopped the ranks that run it; null: nowhere. */
  stopOf(execution: IExecution): ICellStop | null;
  /** What the ranks that run it wait for. */
  notesOf(execution: IExecution): IRankNote[];
  killRank(group: string, rank: number | null): void;
  /** The groups, for their dead ranks and the server's clock. */
  groups: IDistGroups;
  /** Replace the dead ranks of a group. */
  replace(group: string): void;
  /** Whether headers are shown where ranks agree, too. */
  showsHeaders(): boolean;
  /** Whether lines that differ in numbers only are one. */
  condenses(): boolean;
  /** Answer what ranks of an execution ask for. */
  answer(group: string, execution: string, body: IInputRequest): Promise<unknown>;
}
