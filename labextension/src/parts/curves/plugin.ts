import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { addPanelCommand } from '../../plugins/panels/openpanel';
import { IDistExecutions, IDistGroups, IDistOutputTabs, IDistService } from '../../tokens';
import type { CurvesPanel } from './curvespanel';
import { addCurvesTab } from './tab';

/** Open the curves of a cell; args: `{group: id or name, execution?: id}`, by default of the last cell that has some. */
const OPEN = 'jupyter-dist:open-curves';

/** The curves of cells: a tab of their output, and a panel. */
const curvesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:curves',
  description: 'The curves of what cells on ranks print.',
  autoStart: true,
  requires: [IDistService, IDistExecutions, IDistGroups, IDistOutputTabs],
  optional: [INotebookTracker, ILayoutRestorer, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    executions: IDistExecutions,
    groups: IDistGroups,
    tabs: IDistOutputTabs,
    notebooks: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    addCurvesTab(tabs, trans, (group, execution) =>
      groups.find(group) ? () => void app.commands.execute(OPEN, { group, execution }) : null
    );
    const create = async (group: IGroup): Promise<CurvesPanel> => {
      const part = await loaded(import(/* webpackChunkName: "curves" */ './curvespanel'));
      return new part.CurvesPanel({ service, executions, groups, group, trans });
    };
    addPanelCommand(
      { app, groups, notebooks, restorer, palette, trans },
      {
        command: OPEN,
        label: trans.__('Show Curves of Ranks'),
        namespace: 'jupyter-dist-curves',
        rank: 30,
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

export default curvesPlugin;
