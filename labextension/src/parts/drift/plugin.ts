import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, type TranslationBundle } from '@jupyterlab/translation';
import { loaded, loadedAtLast } from '../../services/errors';
import { CommandIDs, IDistExecutions, IDistGroups, IDistHeaderNotes, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../../plugins/commands/groupchoice';
import { addGroupCommands, type IGroupCommand } from '../../plugins/commands/rows';
import { addRepair } from '../../plugins/commands/groupmenu';
import { cellOf } from '../../plugins/notebook/showcell';
import type { CatchUp } from './catchup';
import { DriftNote } from './driftnote';
import { MissedCells } from './model/missed';

const OFFER_ARGS = {
  type: 'object',
  properties: { group: { type: 'string' }, asDialog: { type: 'boolean' } }
} as const;

/** Shows which cells ranks have missed; offers to run missed cells on the ranks that missed them; the code for it is loaded when it is first used. */
const driftPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:drift',
  description: 'Shows which cells ranks have missed, and runs them there.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistExecutions, IDistHeaderNotes],
  optional: [INotebookTracker, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    executions: IDistExecutions,
    notes: IDistHeaderNotes,
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
    addRepair({
      command: CommandIDs.catchUp,
      brief: trans.__('Catch up\u2026'),
      isEnabled: ({ ranks }) => ranks.some(({ absences }) => absences?.length)
    });
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
    addNotes(app, new MissedCells(service, groups), notes, tracker, trans);
  }
};

/** Show in the headers of cells which ranks have missed them; offer to catch up where ranks were replaced. */
function addNotes(
  { commands }: JupyterFrontEnd,
  missed: MissedCells,
  notes: IDistHeaderNotes,
  tracker: INotebookTracker | null,
  trans: TranslationBundle
): void {
  missed.replaced.connect((_, group) => void commands.execute(CommandIDs.offerCatchUp, { group: group.id }));
  notes.add({
    id: driftPlugin.id,
    rank: 90,
    create: context =>
      new DriftNote({
        ...context,
        trans,
        missed,
        cellOf: node => cellOf(tracker, node),
        catchUp: (group, execution) => void commands.execute(CommandIDs.catchUp, { group, execution })
      })
  });
}

export default driftPlugin;
