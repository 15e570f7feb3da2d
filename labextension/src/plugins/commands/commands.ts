import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { cleaningIcon, closeIcon, refreshIcon, stopIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyJSONObject, ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { isGone } from '../../model/groups/groups';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from './groupchoice';
import { GroupCommands } from './groupcommands';

/** The commands on groups: interrupt, restart, repair, shut down, empty caches, export. The Kernel menu is in the schema. */
export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:commands',
  description: 'Commands that interrupt, restart and shut down groups of ranks.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  optional: [INotebookTracker, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const choice = new GroupChoice(groups, tracker, trans);
    const actions = new GroupCommands(service, groups, trans);
    const { contents } = app.serviceManager;
    const open = (path: string) => app.commands.execute('docmanager:open', { path });
    const exportScript = async (group: IGroup): Promise<void> => {
      try {
        const { ScriptExport } = await loaded(import(/* webpackChunkName: "scriptexport" */ './scriptexport'));
        await new ScriptExport(service, contents, tracker, open, trans).run(group);
      } catch (reason) {
        notifyError(reason);
      }
    };
    const commands = commandOptions(choice, actions, exportScript, groups, trans);
    for (const [command, options] of Object.entries(commands)) {
      app.commands.addCommand(command, options);
      palette?.addItem({ command, category: trans.__('Ranks') });
    }
    groups.changed.connect(() => {
      Object.keys(commands).forEach(command => app.commands.notifyCommandChanged(command));
    }, app);
  }
};

type Options = CommandRegistry.ICommandOptions;

function commandOptions(
  choice: GroupChoice,
  actions: GroupCommands,
  exportScript: (group: IGroup) => Promise<void>,
  groups: IDistGroups,
  trans: TranslationBundle
): Record<string, Options> {
  const isEnabled = () => groups.groups.length > 0;
  const common = { isEnabled, describedBy: { args: groupArgs(trans) } };
  const on: On = (title, act) => async args => {
    const group = await choice.resolve(args.group, title);
    if (group) {
      await act(group, args);
    }
  };
  const iconOf = (icon: typeof stopIcon) => (args: Args) => (args.isPalette ? undefined : icon);
  const interrupt = trans.__('Interrupt Ranks');
  const restart = trans.__('Restart Ranks\u2026');
  const shutdown = trans.__('Shut Down Ranks\u2026');
  const emptyCache = trans.__('Empty Memory Caches of Ranks');
  return {
    [CommandIDs.interrupt]: {
      ...common,
      label: args => (args.toolbar ? '' : interrupt),
      caption: trans.__('Interrupt the cells that are running on ranks'),
      icon: iconOf(stopIcon),
      execute: on(interrupt, (group, args) =>
        actions.interrupt(group, typeof args.ranks === 'string' ? args.ranks : 'all')
      )
    },
    [CommandIDs.restart]: {
      ...common,
      label: restart,
      icon: iconOf(refreshIcon),
      execute: on(restart, group => actions.restart(group))
    },
    ...repairOptions(common, on, actions, trans),
    ...parkOptions(common, on, actions, groups, trans),
    [CommandIDs.emptyCache]: {
      ...common,
      label: emptyCache,
      icon: iconOf(cleaningIcon),
      execute: on(emptyCache, group => actions.emptyCache(group))
    },
    ...exportOptions(common, on, exportScript, trans),
    [CommandIDs.shutdown]: {
      ...common,
      label: shutdown,
      icon: iconOf(closeIcon),
      execute: on(shutdown, group => actions.shutdown(group))
    },
    [CommandIDs.shutdownAll]: {
      isEnabled,
      describedBy: { args: { type: 'object', properties: {} } },
      label: trans.__('Shut Down All Groups of Ranks\u2026'),
      execute: () => actions.shutdownAll()
    }
  };
}

/** The commands that repair a group and keep the healthy ranks. */
function repairOptions(
  common: Pick<Options, 'isEnabled' | 'describedBy'>,
  on: On,
  actions: GroupCommands,
  trans: TranslationBundle
): Record<string, Options> {
  const kill = trans.__('Kill a Rank\u2026');
  const reform = trans.__('Re-create Process Group');
  return {
    [CommandIDs.killRank]: {
      ...common,
      label: kill,
      caption: trans.__('Kill a rank that cannot be interrupted; the other ranks keep their variables'),
      execute: on(kill, (group, { rank }) => actions.kill(group, typeof rank === 'number' ? rank : null))
    },
    [CommandIDs.reform]: {
      ...common,
      label: reform,
      caption: trans.__('Re-create the process group in the same processes; all variables are kept'),
      execute: on(reform, group => actions.reform(group))
    }
  };
}

/** The commands that park a group, resume it, and start it again after its end. */
function parkOptions(
  common: Pick<Options, 'isEnabled' | 'describedBy'>,
  on: On,
  actions: GroupCommands,
  groups: IDistGroups,
  trans: TranslationBundle
): Record<string, Options> {
  const park = trans.__('Park Ranks');
  const resume = trans.__('Resume Parked Ranks');
  const again = trans.__('Start Ranks Again');
  return {
    [CommandIDs.park]: {
      ...common,
      isEnabled: () => groups.groups.some(group => group.state === 'ready'),
      label: park,
      caption: trans.__(
        'Give the devices of idle ranks back; all variables are kept, and the next cell resumes the ranks'
      ),
      execute: on(park, group => actions.park(group))
    },
    [CommandIDs.resume]: {
      ...common,
      isEnabled: () => groups.groups.some(group => group.state === 'parked'),
      label: resume,
      caption: trans.__('Bring the tensors of parked ranks back to their devices'),
      execute: on(resume, group => actions.resume(group))
    },
    [CommandIDs.startAgain]: {
      ...common,
      isEnabled: () => groups.groups.some(isGone),
      label: again,
      caption: trans.__('Start a group that has ended, with the same name and options'),
      execute: on(again, group => actions.startAgain(group))
    }
  };
}

/** The command that exports cells. */
function exportOptions(
  common: Pick<Options, 'isEnabled' | 'describedBy'>,
  on: On,
  exportScript: (group: IGroup) => Promise<void>,
  trans: TranslationBundle
): Record<string, Options> {
  const title = trans.__('Export Ranks\u2019 Cells as a Script');
  return {
    [CommandIDs.exportScript]: {
      ...common,
      label: title,
      caption: trans.__('Write the cells that ran on ranks as a script for torchrun, beside the notebook'),
      execute: on(title, group => exportScript(group))
    }
  };
}

type Args = ReadonlyPartialJSONObject;
type On = (title: string, act: (group: Group, args: Args) => Promise<void>) => (args: Args) => Promise<void>;
type Group = NonNullable<Awaited<ReturnType<GroupChoice['resolve']>>>;

/** The arguments of commands on a group, as JSON schema. */
function groupArgs(trans: TranslationBundle): ReadonlyJSONObject {
  return {
    type: 'object',
    properties: {
      group: { type: 'string', description: trans.__('Name or id of the group') },
      ranks: { type: 'string', description: trans.__('A rank expression such as 0-3') },
      rank: { type: 'number', description: trans.__('One rank') }
    }
  };
}
