import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import type { VariablesPanel } from '../../widgets/variables/panel';
import { notifyError } from '../../widgets/errornote';
import { GroupChoice } from '../commands/groupchoice';
import { addPanel } from './grouppanel';

const ARGS = { type: 'object', properties: { group: { type: 'string' }, restore: { type: 'boolean' } } } as const;

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
    const tracker = new WidgetTracker<VariablesPanel>({ namespace: 'jupyter-dist-variables' });
    const choice = new GroupChoice(groups, notebooks, trans);
    const command = CommandIDs.openVariables;
    const label = trans.__('Show Variables of Ranks');
    const create = async (group: IGroup): Promise<VariablesPanel> => {
      const part = await loaded(import(/* webpackChunkName: "variables" */ '../../widgets/variables/panel'));
      return new part.VariablesPanel({ service, groups, group, trans });
    };
    const open = async (reference: unknown, isRestored: boolean): Promise<void> => {
      const group = await choice.resolve(reference, label);
      if (!group) {
        return;
      }
      let panel = tracker.find(one => one.group === group.id);
      if (!panel) {
        panel = await create(group);
        await addPanel(app, tracker, notebooks, panel, isRestored);
      }
      if (!isRestored) {
        app.shell.activateById(panel.id);
      }
    };
    app.commands.addCommand(command, {
      label,
      describedBy: { args: ARGS },
      isEnabled: () => groups.groups.length > 0,
      execute: async ({ group, restore }) => {
        await (restore ? groups.ready : undefined);
        await open(group, restore === true).catch(notifyError);
      }
    });
    palette?.addItem({ command, category: trans.__('Ranks') });
    void restorer?.restore(tracker, { command, args: ({ group }) => ({ group, restore: true }), name: ({ group }) => group });
  }
};
