import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { PartialAnswer } from '../../model/cells/executor/cellexecutor';
import { NotebooksModel } from '../../model/notebooks/notebooks';
import { notifyError } from '../../widgets/base/errornote';
import { IDistExecutions, IDistGroups, IDistNotebooks, IDistService } from '../../tokens';

const SETTINGS = 'jupyter-dist:rank-picker';

/** The model, which the executor needs before the notebook tracker exists. */
export const notebooksPlugin: JupyterFrontEndPlugin<IDistNotebooks> = {
  id: 'jupyter-dist:notebooks',
  description: 'Tracks which cells of open notebooks run on ranks.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistExecutions],
  provides: IDistNotebooks,
  activate: (
    _: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    executions: IDistExecutions
  ): IDistNotebooks => new NotebooksModel({ service, groups, executions })
};

/** Follows the open notebooks, and JupyterLab's interrupt. */
export const attachPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:attach',
  description: 'Reconnects the cells of opened notebooks to their executions, and interrupts them.',
  autoStart: true,
  requires: [IDistNotebooks, INotebookTracker],
  optional: [ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    notebooks: IDistNotebooks,
    tracker: INotebookTracker,
    settings: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const { contents } = app.serviceManager;
    void followSettings(notebooks, settings, (translator ?? nullTranslator).load('jupyter_dist'));
    const open = (panel: NotebookPanel): void => {
      void panel.context.ready.then(() => {
        if (panel.isDisposed) {
          return;
        }
        const { context } = panel;
        const { model } = context;
        const saved = Date.parse(context.contentsModel?.last_modified ?? '') / 1000;
        const opened = notebooks.open(model, {
          path: () => contents.localPath(context.path),
          savedAt: Number.isNaN(saved) ? Infinity : saved
        });
        const onSave = (_: unknown, state: DocumentRegistry.SaveState): void => {
          if (state === 'started') {
            notebooks.flush(model);
          }
        };
        context.saveState.connect(onSave, app);
        panel.disposed.connect(() => {
          context.saveState.disconnect(onSave, app);
          opened.dispose();
        }, app);
      });
    };
    tracker.forEach(open);
    tracker.widgetAdded.connect((_, panel) => open(panel), app);
    // Another page may have run cells of the notebook that is shown now, in an instant.
    tracker.currentChanged.connect(() => notebooks.look(), app);
    window.addEventListener('focus', () => notebooks.look());
    app.commands.commandExecuted.connect((_: CommandRegistry, { id }: CommandRegistry.ICommandExecutedArgs) => {
      const model = tracker.currentWidget?.content.model;
      if (id === 'notebook:interrupt-kernel' && model) {
        // The toolbar button and "I I" interrupt the cell wherever it runs.
        notebooks.interrupt(model).catch(notifyError);
      }
    }, app);
  }
};

async function followSettings(
  notebooks: IDistNotebooks,
  registry: ISettingRegistry | null,
  trans: TranslationBundle
): Promise<void> {
  const ask = (message: string): Promise<PartialAnswer> => askWhere(trans, message);
  notebooks.askFirst = ask;
  try {
    const settings = await registry?.load(SETTINGS);
    const read = (): void => {
      notebooks.emptyCache = settings?.composite.emptyCache === true;
      notebooks.askFirst = settings?.composite.askFirst === false ? null : ask;
    };
    settings?.changed.connect(read, notebooks);
    read();
  } catch (reason) {
    // Without its schema the extension still works, with the defaults.
    console.warn('jupyter_dist: could not read the cell settings', reason);
  }
}

/** Where a cell runs that needs all ranks and is for some. */
async function askWhere(trans: TranslationBundle, message: string): Promise<PartialAnswer> {
  const answers: PartialAnswer[] = ['cancel', 'anyway', 'all'];
  const buttons = [
    Dialog.cancelButton({ label: trans.__('Cancel') }),
    Dialog.createButton({ label: trans.__('Run anyway') }),
    Dialog.okButton({ label: trans.__('Run on all') })
  ];
  const title = trans.__('This cell needs all ranks');
  const body = trans.__('%1 On some it waits for the others.', message);
  const { button } = await showDialog({ title, body, buttons, defaultButton: 2 });
  return answers[
    Math.max(
      0,
      buttons.findIndex(({ label }) => label === button.label)
    )
  ];
}
