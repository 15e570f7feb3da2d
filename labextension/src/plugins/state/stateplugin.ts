import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded } from '../../services/errors';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import { GroupChoice } from '../commands/groupchoice';
import { addGroupCommands, type IGroupCommand } from '../commands/rows';
import type { ReplaceCommands } from './replacecommands';

/** Replaces dead ranks; the code for it is loaded when it is first used. */
export const statePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:state',
  description: 'Replaces dead ranks of groups.',
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
    const replacing = async (): Promise<ReplaceCommands> => {
      const part = await loaded(import(/* webpackChunkName: "replace" */ './replacecommands'));
      return new part.ReplaceCommands(service, groups, app.commands, trans);
    };
    const replace: IGroupCommand = {
      id: CommandIDs.replace,
      label: trans.__('Replace Dead Ranks\u2026'),
      caption: trans.__('Start new processes for dead ranks; the other ranks keep their variables'),
      act: async group => (await replacing()).replace(group)
    };
    addGroupCommands(app, palette, groups, choice, [replace], trans);
  }
};
