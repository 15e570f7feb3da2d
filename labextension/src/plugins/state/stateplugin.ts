import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { loaded } from '../../services/errors';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import { GroupChoice } from '../commands/groupchoice';
import { addGroupCommands, type IGroupCommand } from '../commands/rows';
import type { ReplaceCommands } from './replacecommands';
import type { ResizeCommands } from './resizecommands';

/** Resizes groups, and replaces their dead ranks; the code for it is loaded when it is first used. */
export const statePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:state',
  description: 'Resizes groups, and replaces their dead ranks.',
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
    const parts = partsOf(app.commands, service, groups, trans);
    addGroupCommands(app, palette, groups, choice, rows(parts, trans), trans);
  }
};

/** The code of the commands, loaded when it is first used. */
interface IParts {
  resizing(): Promise<ResizeCommands>;
  replacing(): Promise<ReplaceCommands>;
}

function partsOf(
  commands: CommandRegistry,
  service: IDistService,
  groups: IDistGroups,
  trans: TranslationBundle
): IParts {
  const resizing = async (): Promise<ResizeCommands> => {
    const part = await loaded(import(/* webpackChunkName: "resize" */ './resizecommands'));
    return new part.ResizeCommands(service, groups, trans);
  };
  const replacing = async (): Promise<ReplaceCommands> => {
    const part = await loaded(import(/* webpackChunkName: "replace" */ './replacecommands'));
    return new part.ReplaceCommands(service, groups, commands, trans);
  };
  return { resizing, replacing };
}

/** The commands. */
function rows(parts: IParts, trans: TranslationBundle): IGroupCommand[] {
  return [
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
