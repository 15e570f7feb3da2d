/**
 * Runs the cells of this page. JupyterLab has one executor per page and cannot
 * open notebooks without one, so activation never throws: whatever fails in our
 * plugins, kernel cells run, and a rank cell never runs anywhere else.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { INotebookCellExecutor, INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { blockRankCells, CellGuard } from '../../model/cells/executor/cellguard';
import { getNotebookTarget } from '../../model/targets/target';
import type { IErrorBody } from '../../services/protocol';
import { IDistGuard, IDistNotebooks } from '../../tokens';
import { explainError } from '../../widgets/base/errornote';
import { findKernelExecutor } from './kernelexecutor';

/** Runs rank cells on ranks, and other cells on the kernel. */
export const executorPlugin: JupyterFrontEndPlugin<INotebookCellExecutor> = {
  id: 'jupyter-dist:executor',
  description: 'Runs notebook cells on ranks if the notebook is set to ranks.',
  autoStart: true,
  optional: [IDistNotebooks, ITranslator],
  provides: INotebookCellExecutor,
  activate: (
    app: JupyterFrontEnd,
    notebooks: IDistNotebooks | null,
    translator: ITranslator | null
  ): INotebookCellExecutor => {
    const guard = newGuard(translator, trans => notebooks?.executor ?? failed(trans));
    void runKernelCells(app, guard, notebooks);
    return guard;
  }
};

/** Replaces the executor plugin if that one is disabled; registered before it. */
export const kernelExecutorPlugin: JupyterFrontEndPlugin<INotebookCellExecutor> = {
  id: 'jupyter-dist:kernel-executor',
  description: 'Runs kernel cells, and refuses rank cells, when jupyter-dist:executor is disabled.',
  autoStart: true,
  optional: [ITranslator],
  provides: INotebookCellExecutor,
  activate: (app: JupyterFrontEnd, translator: ITranslator | null): INotebookCellExecutor => {
    const guard = newGuard(translator, disabled);
    void runKernelCells(app, guard, null);
    return guard;
  }
};

/** Checks which extension runs cells, and reports it if it is not this one. */
export const guardPlugin: JupyterFrontEndPlugin<IDistGuard> = {
  id: 'jupyter-dist:guard',
  description: 'Prevents rank cells from running anywhere else.',
  autoStart: true,
  requires: [INotebookCellExecutor],
  optional: [INotebookTracker, ITranslator],
  provides: IDistGuard,
  activate: (
    app: JupyterFrontEnd,
    executor: INotebookCellExecutor,
    tracker: INotebookTracker | null,
    translator: ITranslator | null
  ): IDistGuard => {
    const trans = loadTranslation(translator);
    if (executor instanceof CellGuard) {
      warnOnce(trans, tracker, executor.trouble);
      return { trouble: executor.trouble };
    }
    const trouble = taken(trans, providers(app));
    blockRankCells(trouble);
    warnOnce(trans, tracker, trouble);
    return { trouble };
  }
};

/** The page's executor; if `inner` throws, it refuses rank cells. */
function newGuard(
  translator: ITranslator | null,
  inner: (trans: TranslationBundle) => INotebookCellExecutor | IErrorBody
): CellGuard {
  const trans = loadTranslation(translator);
  try {
    return new CellGuard(inner(trans));
  } catch (reason) {
    console.error('jupyter_dist: cells cannot run on ranks, because the executor of this page failed to start', reason);
    return new CellGuard(failed(trans));
  }
}

/** The texts of this extension; in English if the translator fails. */
function loadTranslation(translator: ITranslator | null): TranslationBundle {
  try {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    trans.__('Ranks'); // a bundle that cannot translate throws here, not where an error is shown
    return trans;
  } catch (reason) {
    console.error('jupyter_dist: the texts of cells are in English, because the translator failed', reason);
    return nullTranslator.load('jupyter_dist');
  }
}

/** Run kernel cells by the executor of another extension, if one is installed. */
async function runKernelCells(app: JupyterFrontEnd, guard: CellGuard, notebooks: IDistNotebooks | null): Promise<void> {
  const executor = await findKernelExecutor(app);
  if (executor) {
    guard.runOnKernel = options => executor.runCell(options);
    notebooks?.runKernelCellsBy(executor);
  }
}

/** Warn when the first notebook on ranks is opened; refused cells show it again. */
function warnOnce(trans: TranslationBundle, tracker: INotebookTracker | null, trouble: IErrorBody | null): void {
  if (!trouble) {
    return;
  }
  let isSaid = false;
  const look = (panel: NotebookPanel): void => {
    void panel.context.ready.then(() => {
      const { model } = panel.content;
      if (!isSaid && model && getNotebookTarget(model)) {
        isSaid = true;
        Notification.error(trouble.message, {
          autoClose: false,
          actions: [
            { label: trans.__('What to do'), callback: () => void explainError(trans.__('Ranks unavailable'), trouble) }
          ]
        });
      }
    });
  };
  tracker?.forEach(look);
  tracker?.widgetAdded.connect((_, panel) => look(panel));
}

/** Plugins of other extensions that may provide the executor. */
function providers(app: object): string[] {
  const { availablePlugins = [] } = (app as Partial<IHasPlugins>).info ?? {};
  return availablePlugins
    .filter(
      ({ id, provides, enabled }) =>
        enabled &&
        provides?.name === INotebookCellExecutor.name &&
        !/^(@jupyterlab\/notebook-extension|jupyter-dist):/.test(id)
    )
    .map(({ id }) => id);
}

/** JupyterLab lists its plugins; Notebook 7 does not. */
interface IHasPlugins {
  info: { availablePlugins?: { id: string; enabled: boolean; provides: { name: string } | null }[] };
}

function taken(trans: TranslationBundle, others: string[]): IErrorBody {
  const other = others[others.length - 1] ?? trans.__('the plugin that provides INotebookCellExecutor');
  return {
    code: 'executor_taken',
    message: trans.__('Another extension runs the cells of this page, so cells cannot run on ranks.'),
    hint: trans.__(
      'Disable it ("jupyter labextension disable %1") and reload the page, or run the cells on the kernel.',
      other
    )
  };
}

function disabled(trans: TranslationBundle): IErrorBody {
  return {
    code: 'executor_disabled',
    message: trans.__('The plugin that runs cells on ranks is disabled.'),
    hint: trans.__(
      'Enable it ("jupyter labextension enable jupyter-dist:executor") and reload the page, or run the cells on the kernel.'
    )
  };
}

function failed(trans: TranslationBundle): IErrorBody {
  return {
    code: 'extension_failed',
    message: trans.__('jupyter_dist did not start on this page, so cells cannot run on ranks.'),
    hint: trans.__(
      'Reload the page. If that does not help, look in the browser console for the plugin that failed or is disabled.'
    )
  };
}
