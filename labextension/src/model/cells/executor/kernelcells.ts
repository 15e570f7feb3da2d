/**
 * Kernel cells, as the cells after them see them. JupyterLab's executor returns false, or even true, for a cell that its
 * kernel has not run: the cells after it are in the kernel's queue, which the kernel cancels. Cells that wait in
 * the page are in no kernel's queue.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookCellExecutor } from '@jupyterlab/notebook';
import type { Kernel, Session } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import { findCell } from '../output/cellruns';
import { CellUnfinished } from './queue';

type IRunCellOptions = INotebookCellExecutor.IRunCellOptions;

/** In each of these states a kernel cancels its running cell and its queue. */
const CANCELS: ReadonlySet<string> = new Set<Kernel.Status>(['restarting', 'autorestarting', 'terminating', 'dead']);

/** A cell that waits for the kernel or runs on it. */
export class KernelCell {
  constructor(
    private readonly _options: IRunCellOptions,
    private readonly _model: ICodeCellModel,
    /** Whether the cells after it run although it fails. */
    readonly mayFail: boolean
  ) {
    this._id = _model.id;
    this._stateBefore = _model.executionState;
    const { sessionContext: context } = _options;
    context?.statusChanged.connect(this._onStatus, this);
    context?.kernelChanged.connect(this._onKernel, this);
  }

  /** It has ended: the kernel's signals are of no more interest. */
  release(): void {
    Signal.clearData(this);
  }

  /** Show it as running: it may have to wait for ranks. */
  showWaiting(): void {
    this._model.executionState = 'running';
  }

  /** Show that it will not run. */
  showIdle(): void {
    if (!this._model.isDisposed) {
      this._model.executionState = 'idle';
    }
  }

  /** Run it. Rejects with CellUnfinished if the cells after it must not run, and JupyterLab does not reject. */
  async run(execute: INotebookCellExecutor['runCell']): Promise<boolean> {
    const { cell, sessionContext } = this._options;
    if (this._isCancelled || cell.isDisposed) {
      this.showIdle();
      throw new CellUnfinished(false);
    }
    const kernel = kernelOf(sessionContext);
    const isRefused = refuses(sessionContext);
    if (isRefused) {
      this._model.executionState = this._stateBefore;
    }
    const result = await execute(this._options);
    // A cell can start the kernel.
    const hasRun = !isRefused && (result || (await this._hasEndedWell(kernel ?? kernelOf(sessionContext))));
    if (!hasRun) {
      throw new CellUnfinished(result);
    }
    return result;
  }

  /**
   * Whether a cell that JupyterLab has left to the kernel succeeds: it was moved, deleted or run again, or a view of it
   * was closed. The kernel runs the cell to its end and, if the cell fails, aborts requests that arrived before that.
   */
  private async _hasEndedWell(kernel: Kernel.IKernelConnection | null): Promise<boolean> {
    const { notebook } = this._options;
    const hasFailed = !this.mayFail && hasError(findCell(notebook, this._id));
    if (this._isCancelled || notebook.isDisposed || !kernel || hasFailed) {
      return false;
    }
    try {
      const nothing = { code: '', silent: true, store_history: false, allow_stdin: false, stop_on_error: false };
      return (await kernel.requestExecute(nothing).done).content.status === 'ok';
    } catch {
      return false; // the kernel was restarted or changed, or has ended
    }
  }

  private _onStatus(_: ISessionContext, status: Kernel.Status): void {
    this._isCancelled ||= CANCELS.has(status);
  }

  private _onKernel(_: ISessionContext, { oldValue }: Session.ISessionConnection.IKernelChangedArgs): void {
    // The first kernel has cancelled nothing.
    this._isCancelled ||= oldValue !== null;
  }

  /** The id of the cell, which outlives its widget and its model. */
  private readonly _id: string;
  private _isCancelled = false;
  private readonly _stateBefore: ICodeCellModel['executionState'];
}

function kernelOf(context: ISessionContext | undefined): Kernel.IKernelConnection | null {
  return context?.session?.kernel ?? null;
}

/** Whether JupyterLab refuses to run cells, and shows a dialog about it. */
function refuses(context: ISessionContext | undefined): boolean {
  return context?.isTerminating === true || context?.pendingInput === true;
}

function hasError(cell: ICodeCellModel | null): boolean {
  return cell?.outputs.toJSON().some(({ output_type: type }) => type === 'error') ?? false;
}
