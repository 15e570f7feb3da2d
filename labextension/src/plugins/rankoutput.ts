import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { RANKS_MIME } from '../services/protocol';
import { CommandIDs, IDistExecutions } from '../tokens';
import { RanksRenderer } from '../widgets/rankoutput/renderer';

/** A plugin, not a mimeExtension: those are given no services. */
export const rankOutputPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:rank-output',
  description: 'Renders what ranks said: folded, and rank by rank.',
  autoStart: true,
  requires: [IDistExecutions, IRenderMimeRegistry],
  optional: [INotebookTracker, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    executions: IDistExecutions,
    rendermime: IRenderMimeRegistry,
    tracker: INotebookTracker | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const openLog = (group: string, rank: number): void => {
      void app.commands.execute(CommandIDs.openLog, { group, rank });
    };
    const add = (registry: IRenderMimeRegistry): void => {
      registry.addFactory(
        {
          safe: true,
          mimeTypes: [RANKS_MIME],
          defaultRank: 10,
          createRenderer: () =>
            new RanksRenderer({
              rendermime: registry,
              executions,
              trans,
              openLog
            })
        },
        10
      );
    };
    add(rendermime);
    // Each notebook has a clone: nested outputs need its resolver and its
    // widget manager.
    tracker?.forEach(panel => add(panel.content.rendermime));
    tracker?.widgetAdded.connect(
      (_, panel) => add(panel.content.rendermime),
      app
    );
  }
};
