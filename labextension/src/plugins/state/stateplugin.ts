import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { isGone, takesCells } from '../../model/groups/groups';
import { loaded } from '../../services/errors';
import { CommandIDs, IDistExecutions, IDistGroups, IDistService, IDistStarter } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../commands/groupchoice';
import { addGroupCommands, type IGroupCommand } from '../commands/rows';
import type { ReplaceCommands } from './replacecommands';
import type { ResizeCommands } from './resizecommands';
import type { SaveCommands } from './savecommands';
import type { SavedStart } from './startsaved';

const BEGIN_ARGS = {
  type: 'object',
  properties: { group: { type: 'string' }, save: { type: 'string' }, folder: { type: 'string' } }
} as const;

/** Saves, restores and resizes groups, and replaces their dead ranks; the code for it is loaded when it is first used. */
export const statePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:state',
  description: 'Saves, restores and resizes groups, and replaces their dead ranks.',
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
    const choice = new GroupChoice(groups, tracker, trans);
    const parts = partsOf(app.commands, service, groups, executions, starter, trans);
    app.commands.addCommand(CommandIDs.beginWith, {
      label: trans.__('Begin a Group with a Save'),
      describedBy: { args: BEGIN_ARGS },
      execute: async ({ group: id, save: name, folder }) => {
        const group = await service.status(String(id));
        await (await parts.starting()).begin(group, { name: String(name), folder: String(folder) }).catch(notifyError);
      }
    });
    const rows = [...saveRows(parts, trans), ...resizeRows(parts, trans)];
    addGroupCommands(app, palette, groups, choice, rows, trans);
  }
};

/** The code of the commands, loaded when it is first used. */
interface IParts {
  saving(): Promise<SaveCommands>;
  starting(): Promise<SavedStart>;
  resizing(): Promise<ResizeCommands>;
  replacing(): Promise<ReplaceCommands>;
}

function partsOf(
  commands: CommandRegistry,
  service: IDistService,
  groups: IDistGroups,
  executions: IDistExecutions,
  starter: IDistStarter,
  trans: TranslationBundle
): IParts {
  const saving = async (): Promise<SaveCommands> => {
    const part = await loaded(import(/* webpackChunkName: "state" */ './savecommands'));
    return new part.SaveCommands(service, executions, () => groups.clock.now(), trans);
  };
  const starting = async (): Promise<SavedStart> => {
    const part = await loaded(import(/* webpackChunkName: "state" */ './startsaved'));
    return new part.SavedStart(service, starter, await saving(), trans);
  };
  const resizing = async (): Promise<ResizeCommands> => {
    const part = await loaded(import(/* webpackChunkName: "resize" */ './resizecommands'));
    return new part.ResizeCommands(service, groups, trans);
  };
  const replacing = async (): Promise<ReplaceCommands> => {
    const part = await loaded(import(/* webpackChunkName: "replace" */ './replacecommands'));
    return new part.ReplaceCommands(service, groups, commands, trans);
  };
  return { saving, starting, resizing, replacing };
}

/** The commands that save and restore. */
function saveRows(parts: IParts, trans: TranslationBundle): IGroupCommand[] {
  return [
    {
      id: CommandIDs.save,
      label: trans.__('Save Ranks\u2026'),
      caption: trans.__('Save the variables of all ranks in files, to restore them later'),
      when: takesCells,
      act: async group => (await parts.saving()).save(group)
    },
    {
      id: CommandIDs.saves,
      label: trans.__('Saves of Ranks\u2026'),
      caption: trans.__('Show the saves, to restore or delete them'),
      when: group => !isGone(group),
      act: async group => (await parts.saving()).show(group)
    }
  ];
}

/** The commands that change the number of ranks, or start them again. */
function resizeRows(parts: IParts, trans: TranslationBundle): IGroupCommand[] {
  return [
    {
      id: CommandIDs.startSaved,
      label: trans.__('Start Ranks as at Their Last Save'),
      caption: trans.__('Start a group that has ended again, with the variables of its last save'),
      when: group => isGone(group) && Boolean(group.last_save),
      act: async group => {
        if (isGone(group) && group.last_save) {
          await (await parts.starting()).again(group, group.last_save);
        }
      }
    },
    {
      id: CommandIDs.replace,
      label: trans.__('Replace Dead Ranks\u2026'),
      caption: trans.__('Start new processes for dead ranks; the other ranks keep their variables'),
      act: async group => (await parts.replacing()).replace(group)
    },
    {
      id: CommandIDs.resize,
      label: trans.__('Resize a Group of Ranks\u2026'),
      caption: trans.__('Change the number of ranks; ranks that stay keep their processes and all variables'),
      when: ({ state }) => state === 'ready' || state === 'degraded',
      args: { ranks: { type: 'number' } },
      act: async (group, { ranks }) => (await parts.resizing()).resize(group, typeof ranks === 'number' ? ranks : null)
    }
  ];
}
