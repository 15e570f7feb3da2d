import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, type TranslationBundle } from '@jupyterlab/translation';
import { isGone, takesCells } from '../../model/groups/groups';
import { GroupChoice } from '../../plugins/commands/groupchoice';
import { addRepair, addStateItem, hasStarted } from '../../plugins/commands/groupmenu';
import { addGroupCommands, type IGroupCommand } from '../../plugins/commands/rows';
import { loaded } from '../../services/errors';
import type { IGroup, ILastSave } from '../../services/protocol';
import { IDistExecutions, IDistGroups, IDistService, IDistStarter } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { addBeginning, addReplaceChoice } from '../../widgets/starting/beginnings';
import { asItWas, beginningWith, replaceChoice } from './beginning';
import type { SaveCommands } from './savecommands';
import type { SavedStart } from './startsaved';

const CommandIDs = {
  /** Save the variables of a group, after a dialog; args: `{group}`. */
  save: 'jupyter-dist:save',
  /** Show the saves that a group can restore; args: `{group}`. */
  saves: 'jupyter-dist:saves',
  /** Start a group that has ended again, with the variables of its last save; args: `{group}`. */
  startSaved: 'jupyter-dist:start-saved',
  /** Give a group that was just started the variables of a save; args: `{group, save, folder}`. */
  beginWith: 'jupyter-dist:begin-with'
} as const;

const BEGIN_ARGS = {
  type: 'object',
  properties: { group: { type: 'string' }, save: { type: 'string' }, folder: { type: 'string' } }
} as const;

/** The code of the commands, loaded when it is first used. */
interface ILoaders {
  saving(): Promise<SaveCommands>;
  starting(): Promise<SavedStart>;
}

/** Saves and restores groups, and begins groups and ranks with saves; the code for it is loaded when it is first used. */
const savesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:saves',
  description: 'Saves and restores the variables of groups.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistExecutions, IDistStarter],
  optional: [INotebookTracker, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    executions: IDistExecutions,
    starter: IDistStarter,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const now = (): number => groups.clock.now();
    const saving = async (): Promise<SaveCommands> => {
      const part = await loaded(import(/* webpackChunkName: "saves" */ './savecommands'));
      return new part.SaveCommands(service, executions, now, trans);
    };
    const starting = async (): Promise<SavedStart> => {
      const part = await loaded(import(/* webpackChunkName: "saves" */ './startsaved'));
      return new part.SavedStart(service, starter, await saving(), trans);
    };
    const begin = async (group: IGroup, save: Pick<ILastSave, 'name' | 'folder'>): Promise<void> => {
      await starting()
        .then(part => part.begin(group, save))
        .catch(notifyError);
    };
    app.commands.addCommand(CommandIDs.beginWith, {
      label: trans.__('Begin a Group with a Save'),
      describedBy: { args: BEGIN_ARGS },
      execute: async ({ group: id, save, folder }) =>
        begin(await service.status(String(id)), { name: String(save), folder: String(folder) })
    });
    const choice = new GroupChoice(groups, tracker, trans);
    addGroupCommands(app, palette, groups, choice, rows({ saving, starting }, trans), trans);
    addStateItem({ command: CommandIDs.save, rank: 10, isEnabled: hasStarted });
    addStateItem({ command: CommandIDs.saves, rank: 11, isEnabled: hasStarted });
    addRepair({
      command: CommandIDs.startSaved,
      brief: ({ last_save: last }) => (last ? asItWas(last, now(), trans) : ''),
      title: ({ last_save: last }) =>
        trans.__('Start its ranks again, and restore the save %1 there', last?.name ?? ''),
      standsAlone: true,
      isVisible: canStartSaved,
      isEnabled: canStartSaved
    });
    addBeginning(beginningWith(service, begin, now, trans));
    addReplaceChoice(20, async group => replaceChoice(group, now(), trans));
  }
};

function canStartSaved(group: IGroup): boolean {
  return isGone(group) && Boolean(group.last_save);
}

function rows({ saving, starting }: ILoaders, trans: TranslationBundle): IGroupCommand[] {
  return [
    {
      id: CommandIDs.save,
      label: trans.__('Save Ranks\u2026'),
      caption: trans.__('Save the variables of all ranks in files, to restore them later'),
      when: takesCells,
      act: async group => (await saving()).save(group)
    },
    {
      id: CommandIDs.saves,
      label: trans.__('Saves of Ranks\u2026'),
      caption: trans.__('Show the saves, to restore or delete them'),
      when: group => !isGone(group),
      act: async group => (await saving()).show(group)
    },
    {
      id: CommandIDs.startSaved,
      label: trans.__('Start Ranks as at Their Last Save'),
      caption: trans.__('Start a group that has ended again, with the variables of its last save'),
      when: canStartSaved,
      act: async group => {
        if (isGone(group) && group.last_save) {
          await (await starting()).again(group, group.last_save);
        }
      }
    }
  ];
}

export default savesPlugin;
