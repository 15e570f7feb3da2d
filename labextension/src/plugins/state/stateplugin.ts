import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { isGone, takesCells } from '../../model/groups/groups';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistExecutions, IDistGroups, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../commands/groupchoice';
import type { ResizeCommands } from './resizecommands';
import type { SaveCommands } from './savecommands';

const ARGS = { type: 'object', properties: { group: { type: 'string' }, ranks: { type: 'number' } } } as const;

interface IArgs {
  readonly group?: unknown;
  readonly ranks?: unknown;
}

/** Saves, restores and resizes groups; the code for it is loaded when it is first used. */
export const statePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:state',
  description: 'Saves, restores and resizes groups.',
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
    const saving = async (): Promise<SaveCommands> => {
      const part = await loaded(import(/* webpackChunkName: "state" */ './savecommands'));
      return new part.SaveCommands(service, executions, () => groups.clock.now(), trans);
    };
    const resizing = async (): Promise<ResizeCommands> => {
      const part = await loaded(import(/* webpackChunkName: "resize" */ './resizecommands'));
      return new part.ResizeCommands(service, groups, trans);
    };
    const on =
      (title: string, act: (group: IGroup, args: IArgs) => Promise<void>) =>
      async (args: IArgs): Promise<void> => {
        const group = await choice.resolve(args.group, title);
        if (group) {
          await act(group, args).catch(notifyError);
        }
      };
    const save = trans.__('Save Ranks\u2026');
    const saves = trans.__('Saves of Ranks\u2026');
    const resize = trans.__('Resize a Group of Ranks\u2026');
    const options: Record<string, CommandRegistry.ICommandOptions> = {
      [CommandIDs.save]: {
        label: save,
        caption: trans.__('Save the variables of all ranks in files, to restore them later'),
        isEnabled: () => groups.groups.some(takesCells),
        execute: on(save, async group => (await saving()).save(group))
      },
      [CommandIDs.saves]: {
        label: saves,
        caption: trans.__('Show the saves, to restore or delete them'),
        isEnabled: () => groups.groups.some(group => !isGone(group)),
        execute: on(saves, async group => (await saving()).show(group))
      },
      [CommandIDs.resize]: {
        label: resize,
        caption: trans.__('Change the number of ranks; ranks that stay keep their processes and all variables'),
        isEnabled: () => groups.groups.some(({ state }) => state === 'ready' || state === 'degraded'),
        execute: on(resize, async (group, { ranks }) =>
          (await resizing()).resize(group, typeof ranks === 'number' ? ranks : null)
        )
      }
    };
    for (const [command, option] of Object.entries(options)) {
      app.commands.addCommand(command, { ...option, describedBy: { args: ARGS } });
      palette?.addItem({ command, category: trans.__('Ranks') });
    }
    groups.changed.connect(() => {
      Object.keys(options).forEach(command => app.commands.notifyCommandChanged(command));
    }, app);
  }
};
