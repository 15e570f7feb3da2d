import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistExecutions, IDistGroups, IDistService } from '../../tokens';
import type { CurvesPanel } from '../../widgets/rankoutput/curves/curvespanel';
import { addPanelCommand } from './openpanel';

/** The panel with the curves of cells. */
export const curvesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:curves',
  description: 'The curves of what cells on ranks print.',
  autoStart: true,
  requires: [IDistService, IDistExecutions, IDistGroups],
  optional: [INotebookTracker, ILayoutRestorer, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    executions: IDistExecutions,
    groups: IDistGroups,
    notebooks: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const create = async (group: IGroup): Promise<CurvesPanel> => {
      const part = await loaded(import(/* webpackChunkName: "curves" */ '../../widgets/rankoutput/curves/curvespanel'));
      return new part.CurvesPanel({ service, executions, groups, group, trans });
    };
    addPanelCommand(
      { app, groups, notebooks, restorer, palette, trans },
      {
        command: CommandIDs.openCurves,
        label: trans.__('Show Curves of Ranks'),
        namespace: 'jupyter-dist-curves',
        create,
        opened: (panel, { execution }) => {
          if (typeof execution === 'string') {
            panel.choose(execution);
          }
        }
      }
    );
  }
};
