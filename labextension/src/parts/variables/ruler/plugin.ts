import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { addNotebookCommands } from '../../../plugins/commands/rows';
import { CommandIDs, IDistExecutions, IDistGroups, IDistHeaderNotes, IDistService } from '../../../tokens';
import { Ruler } from './ruler';
import { RulerModel } from './rulermodel';

/** The plugin that has the settings of outputs. */
const SETTINGS_ID = 'jupyter-dist:rank-output';

/** A strip beside each notebook that shows where its ranks began to differ. */
const rulerPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:ruler',
  description: 'Shows in the margin of a notebook where ranks began to differ.',
  autoStart: true,
  requires: [INotebookTracker, IDistService, IDistGroups, IDistExecutions, IDistHeaderNotes],
  optional: [ISettingRegistry, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    service: IDistService,
    groups: IDistGroups,
    executions: IDistExecutions,
    headerNotes: IDistHeaderNotes,
    registry: ISettingRegistry | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const rulers = new Map<NotebookPanel, Ruler>();
    let isWanted = false;
    const add = (panel: NotebookPanel): void => {
      const { model: notebook } = panel.content;
      if (isWanted && notebook && !panel.isDisposed && !rulers.has(panel)) {
        const model = new RulerModel({ service, groups, executions, headerNotes, notebook, trans });
        const look = (): void => model.setVisible(panel.isVisible);
        const ruler = new Ruler(panel, model, trans, () => {
          tracker.currentChanged.disconnect(look);
          rulers.delete(panel);
        });
        tracker.currentChanged.connect(look);
        rulers.set(panel, ruler);
        look();
      }
    };
    const open = (panel: NotebookPanel): void => {
      void panel.context.ready.then(() => add(panel));
      panel.disposed.connect(() => rulers.get(panel)?.dispose());
    };
    void followSetting(registry, wanted => {
      isWanted = wanted;
      if (wanted) {
        tracker.forEach(add);
      } else {
        [...rulers.values()].forEach(ruler => ruler.dispose());
      }
    });
    tracker.forEach(open);
    tracker.widgetAdded.connect((_, panel) => open(panel));
    const first = {
      id: CommandIDs.firstDifference,
      label: trans.__('Go to Where Ranks Began to Differ'),
      caption: trans.__('Show the first cell in which ranks differ'),
      act: (panel: NotebookPanel) => rulers.get(panel)?.showFirst()
    };
    addNotebookCommands(app, palette, tracker, [first], trans);
  }
};

async function followSetting(registry: ISettingRegistry | null, apply: (isWanted: boolean) => void): Promise<void> {
  try {
    const settings = await registry?.load(SETTINGS_ID);
    const read = (): void => apply(settings?.composite.ruler !== false);
    settings?.changed.connect(read);
    read();
  } catch (reason) {
    console.warn('jupyter_dist: could not read the output settings', reason);
    apply(true);
  }
}

export default rulerPlugin;
