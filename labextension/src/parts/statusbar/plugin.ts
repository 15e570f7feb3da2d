import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { getNotebookTarget } from '../../model/targets/target';
import { CommandIDs, IDistGroups } from '../../tokens';
import { RanksStatus } from './ranksstatus';
import { GroupChoice } from '../../plugins/commands/groupchoice';

/** The group in the status bar. */
const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:statusbar',
  description: 'Shows the group of ranks and its state in the status bar.',
  autoStart: true,
  requires: [IDistGroups, IStatusBar],
  optional: [INotebookTracker, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    groups: IDistGroups,
    statusBar: IStatusBar,
    tracker: INotebookTracker | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const choice = new GroupChoice(groups, tracker, trans);
    const item = new RanksStatus({
      groups,
      trans,
      choose: () => choice.foremost(),
      open: () => void app.commands.execute(CommandIDs.showSidebar)
    });
    const note = (): void => noteKernelless(tracker?.currentWidget ?? null);
    const open = ({ content, context, sessionContext }: NotebookPanel): void => {
      sessionContext.kernelChanged.connect(note, item);
      void context.ready.then(() => {
        content.model?.metadataChanged.connect(note, item);
        note(); // after a reload it is the current one before its file is loaded
      });
    };
    tracker?.forEach(open);
    tracker?.widgetAdded.connect((_, panel) => open(panel), item);
    tracker?.currentChanged.connect(() => {
      item.update();
      note();
    }, item);
    statusBar.registerStatusItem('jupyter-dist:statusbar', {
      item,
      align: 'left',
      rank: 200,
      isActive: () => groups.groups.length > 0,
      activeStateChanged: groups.changed
    });
  }
};

/** Note on the page whether the notebook needs no kernel: the toolbar shows that it has none, and the status bar need not. */
function noteKernelless(panel: NotebookPanel | null): void {
  const { model = null } = panel?.content ?? {};
  const isOnRanks = model !== null && getNotebookTarget(model) !== null;
  document.body.dataset.jpdKernelless = String(isOnRanks && !panel?.sessionContext.session?.kernel);
}

export default statusPlugin;
