import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import type { VariablesPanel } from '../../widgets/variables/variablespanel';
import { addPanelCommand } from './openpanel';

/** The panel with the variables of ranks. */
export const variablesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:variables',
  description: 'The variables of ranks, and in what they differ.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  optional: [INotebookTracker, ILayoutRestorer, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    notebooks: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const create = async (group: IGroup): Promise<VariablesPanel> => {
      const part = await loaded(import(/* webpackChunkName: "variables" */ '../../widgets/variables/variablespanel'));
      return new part.VariablesPanel({ service, groups, group, trans });
    };
    addPanelCommand(
      { app, groups, notebooks, restorer, palette, trans },
      {
        command: CommandIDs.openVariables,
        label: trans.__('Show Variables of Ranks'),
        namespace: 'jupyter-dist-variables',
        create
      }
    );
  }
};
