import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { cleaningIcon, closeIcon, refreshIcon, stopIcon } from '@jupyterlab/ui-components';
import { isGone } from '../../model/groups/groups';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import { GroupChoice } from './groupchoice';
import { GroupCommands } from './groupcommands';
import { addGroupCommands, type IGroupCommand } from './rows';

/** The commands on groups: interrupt, restart, repair, shut down, empty caches. The Kernel menu is in the schema. */
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
    const rows = [...runningRows(actions, trans), ...cleaningRows(actions, trans)];
    addGroupCommands(app, palette, groups, choice, rows, trans);
    app.commands.addCommand(CommandIDs.shutdownAll, {
      isEnabled: () => groups.groups.length > 0,
      describedBy: { args: { type: 'object', properties: {} } },
      label: trans.__('Shut Down All Groups of Ranks\u2026'),
      execute: () => actions.shutdownAll()
    });
    palette?.addItem({ command: CommandIDs.shutdownAll, category: trans.__('Ranks') });
    groups.changed.connect(() => app.commands.notifyCommandChanged(CommandIDs.shutdownAll), app);
  }
};

/** The commands that interrupt, restart and repair ranks, and start a group again after its end. */
function runningRows(actions: GroupCommands, trans: TranslationBundle): IGroupCommand[] {
  return [
    {
      id: CommandIDs.interrupt,
      label: trans.__('Interrupt Ranks'),
      caption: trans.__('Interrupt the cells that are running on ranks'),
      icon: stopIcon,
      args: { ranks: { type: 'string', description: trans.__('A rank expression such as 0-3') } },
      act: (group, { ranks }) => actions.interrupt(group, typeof ranks === 'string' ? ranks : 'all')
    },
    {
      id: CommandIDs.restart,
      label: trans.__('Restart Ranks\u2026'),
      icon: refreshIcon,
      act: group => actions.restart(group)
    },
    {
      id: CommandIDs.killRank,
      label: trans.__('Kill a Rank\u2026'),
      caption: trans.__('Kill a rank that cannot be interrupted; the other ranks keep their variables'),
      args: { rank: { type: 'number', description: trans.__('One rank') } },
      act: (group, { rank }) => actions.kill(group, typeof rank === 'number' ? rank : null)
    },
    {
      id: CommandIDs.reform,
      label: trans.__('Re-create Process Group'),
      caption: trans.__('Re-create the process group in the same processes; all variables are kept'),
      act: group => actions.reform(group)
    },
    {
      id: CommandIDs.startAgain,
      label: trans.__('Start Ranks Again'),
      caption: trans.__('Start a group that has ended, with the same name and options'),
      when: isGone,
      act: group => actions.startAgain(group)
    }
  ];
}

/** The commands that free memory and shut down. */
function cleaningRows(actions: GroupCommands, trans: TranslationBundle): IGroupCommand[] {
  return [
    {
      id: CommandIDs.emptyCache,
      label: trans.__('Empty Memory Caches of Ranks'),
      icon: cleaningIcon,
      act: group => actions.emptyCache(group)
    },
    {
      id: CommandIDs.shutdown,
      label: trans.__('Shut Down Ranks\u2026'),
      icon: closeIcon,
      act: group => actions.shutdown(group)
    }
  ];
}
