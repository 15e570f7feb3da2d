import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, type TranslationBundle } from '@jupyterlab/translation';
import { GroupChoice } from '../../plugins/commands/groupchoice';
import { addRepair, addStateItem, type IRepair } from '../../plugins/commands/groupmenu';
import { addGroupCommands, type IGroupCommand } from '../../plugins/commands/rows';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { IDistGroups, IDistService } from '../../tokens';
import type { ResizeCommands } from './resizecommands';
import { sizeOfRest } from './rest';

/** Change the number of ranks of a group; args: `{group, ranks?: number}`, without `ranks` after a dialog. */
const RESIZE = 'jupyter-dist:resize';

/** Resizes groups; the code for it is loaded when it is first used. */
const resizingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:resizing',
  description: 'Changes the number of ranks of groups.',
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
    const load = async (): Promise<ResizeCommands> => {
      const part = await loaded(import(/* webpackChunkName: "resize" */ './resizecommands'));
      return new part.ResizeCommands(service, groups, trans);
    };
    const resize: IGroupCommand = {
      id: RESIZE,
      label: trans.__('Resize a Group of Ranks\u2026'),
      caption: trans.__('Change the number of ranks; ranks that stay keep their processes and all variables'),
      when: canChange,
      args: { ranks: { type: 'number' } },
      act: async (group, { ranks }) => (await load()).resize(group, typeof ranks === 'number' ? ranks : null)
    };
    addGroupCommands(app, palette, groups, new GroupChoice(groups, tracker, trans), [resize], trans);
    addStateItem({ command: RESIZE, rank: 30, isEnabled: canChange, brief: trans.__('Resize\u2026') });
    addRepair(rest(trans));
  }
};

function canChange({ state }: IGroup): boolean {
  return state === 'ready' || state === 'degraded';
}

/** The button that gives a group the size of the ranks that are neither dead nor unreachable. */
function rest(trans: TranslationBundle): IRepair {
  const size = (group: IGroup): number => sizeOfRest(group) ?? 0;
  return {
    command: RESIZE,
    brief: group => trans._n('Go on with the other rank', 'Go on with the other %1 ranks', size(group)),
    title: () => trans.__('The ranks that are there keep all variables, and the group has no others any more'),
    args: group => ({ ranks: size(group) }),
    standsAlone: true,
    isVisible: () => false, // the menu has the command already
    isEnabled: group => sizeOfRest(group) !== null
  };
}

export default resizingPlugin;
