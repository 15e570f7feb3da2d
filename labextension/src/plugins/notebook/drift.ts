import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded, loadedAtLast } from '../../services/errors';
import { CommandIDs, IDistExecutions, IDistGroups, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../commands/groupchoice';
import { addGroupCommands, type IGroupCommand } from '../commands/rows';
import type { CatchUp } from './catchup';

const OFFER_ARGS = {
  type: 'object',
  properties: { group: { type: 'string' }, asDialog: { type: 'boolean' } }
} as const;

/** Offers to run missed cells on the ranks that missed them; the code for it is loaded when it is first used. */
export const driftPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:drift',
  description: 'Shows which cells ranks have missed, and runs them there.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistExecutions],
  optional: [INotebookTracker, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    executions: IDistExecutions,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const choice = new GroupChoice(groups, tracker, trans);
    const openLog = (group: string, rank: number): void =>
      void app.commands.execute(CommandIDs.openLog, { group, rank });
    /** The groups whose next offer is the dialog: the user has asked for it. */
    const asDialogs = new Set<string>();
    const importPart = () => import(/* webpackChunkName: "catchup" */ './catchup');
    const load = async (waits = false): Promise<CatchUp> => {
      const part = await (waits ? loadedAtLast(importPart) : loaded(importPart()));
      return new part.CatchUp(service, groups, executions, openLog, trans);
    };
    const show: IGroupCommand = {
      id: CommandIDs.catchUp,
      label: trans.__('Catch Up Ranks\u2026'),
      caption: trans.__('Show the cells that ranks have missed, and run them there'),
      args: { execution: { type: 'string' } },
      act: async (group, { execution }) => (await load()).show(group, typeof execution === 'string' ? execution : null)
    };
    addGroupCommands(app, palette, groups, choice, [show], trans);
    app.commands.addCommand(CommandIDs.offerCatchUp, {
      label: trans.__('Offer to Catch Up Ranks'),
      describedBy: { args: OFFER_ARGS },
      execute: async args => {
        const group = groups.find(String(args.group));
        if (typeof args.asDialog === 'boolean') {
          asDialogs[args.asDialog ? 'add' : 'delete'](String(args.group));
        } else if (group) {
          const isDialog = asDialogs.delete(group.id);
          await load(true)
            .then(part => (isDialog ? part.showMissed(group) : part.offer(group)))
            .catch(notifyError);
        }
      }
    });
  }
};
