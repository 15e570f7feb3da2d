import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { IDistGroups, IDistService } from '../../tokens';
import { RankCompleter } from './rankcompleter';

/** Completes cells with the names of the ranks that they run on. */
export const completerPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:completer',
  description: 'Completes cells that run on ranks with the names defined there.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  optional: [ICompletionProviderManager, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    manager: ICompletionProviderManager | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    manager?.registerProvider(new RankCompleter(service, groups, trans));
  }
};
