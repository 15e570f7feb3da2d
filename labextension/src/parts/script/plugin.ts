import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { GroupChoice } from '../../plugins/commands/groupchoice';
import { addCellItem, isReachable } from '../../plugins/commands/groupmenu';
import { addGroupCommands } from '../../plugins/commands/rows';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { IDistGroups, IDistService } from '../../tokens';

/** Write the cells that ran on ranks as a script beside the current notebook; args: `{group}`. */
const EXPORT = 'jupyter-dist:export-script';

/** Writes the cells of a notebook as a script; its code is loaded when it is first used. */
const scriptPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:script',
  description: 'Writes cells that ran on ranks as a script for torchrun.',
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
    const { contents } = app.serviceManager;
    const open = (path: string) => app.commands.execute('docmanager:open', { path });
    const row = {
      id: EXPORT,
      label: trans.__('Export Ranks\u2019 Cells as a Script'),
      caption: trans.__('Write the cells that ran on ranks as a script for torchrun, beside the notebook'),
      act: async (group: IGroup): Promise<void> => {
        const { ScriptExport } = await loaded(import(/* webpackChunkName: "scriptexport" */ './scriptexport'));
        await new ScriptExport(service, contents, tracker, open, trans).run(group);
      }
    };
    addGroupCommands(app, palette, groups, new GroupChoice(groups, tracker, trans), [row], trans);
    addCellItem({ command: EXPORT, rank: 10, isEnabled: isReachable });
  }
};

export default scriptPlugin;
