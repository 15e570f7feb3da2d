/** The executions that cells of this page wait for, by notebook and cell id; the cell model is looked up. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookModel } from '@jupyterlab/notebook';
import { ISignal, Signal } from '@lumino/signaling';
import type { IDistExecutions } from '../../../tokens';
import type { Authors } from './authors';
import { FINAL_STATES, IRanksBundle } from '../../../services/protocol';
import { openBundle, savedBundle } from './celloutput';
import { CellRun, ICellRunOptions } from './cellrun';
import { LateOutput, mayChange } from './lateoutput';

/** How long an interrupt of running cells waits until the queued ones of their group are cancelled. */
const CANCEL_QUEUED_MS = 1000;

export interface ICellRunStart extends Omit<ICellRunOptions, 'executions' | 'cell' | 'authors'> {
  /** This page submitted it, and writes its output. */
  isSubmitted?: boolean;
}

export class CellRuns {
  constructor(executions: IDistExecutions, authorsOf: (notebook: INotebookModel) => Authors | null) {
    this._executions = executions;
    this._authorsOf = authorsOf;
  }

  /** Emitted when a run begins or ends, and when its cell is deleted or restored. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The runs whose cell was deleted. */
  get deleted(): CellRun[] {
    return [...this._runs].filter(run => run.cell === null && !run.isDetached);
  }

  /** When the newest run of a notebook was submitted that this page has had, in the server's time. */
  lastQueuedAt(notebook: INotebookModel): number | undefined {
    return this._lastQueuedAt.get(notebook);
  }

  /** Whether this page has shown that execution in a cell. */
  knows(execution: string): boolean {
    return this._known.has(execution);
  }

  /** Show an execution in a cell until it ends. */
  start(options: ICellRunStart): CellRun {
    const { notebook, cellId } = options;
    this.detach(notebook, cellId);
    const cell = findCell(notebook, cellId);
    const authors = this._authorsOf(notebook);
    const { id } = options.execution;
    if (options.isSubmitted) {
      authors?.claim(id, cellId);
    }
    const run = new CellRun({ executions: this._executions, authors, ...options, cell });
    this._runs.add(run);
    this._known.add(id);
    const queuedAt = Math.max(options.execution.queued_at, this.lastQueuedAt(notebook) ?? -Infinity);
    this._lastQueuedAt.set(notebook, queuedAt);
    void run.done.then(() => {
      if (!this._runs.delete(run)) {
        return; // the notebook was closed
      }
      authors?.release(id);
      const saved = run.cell && !run.notebook.isDisposed ? savedBundle(run.cell) : null;
      if (saved) {
        this.followLate(run.notebook, run.cellId, saved);
      }
      this._changed.emit();
    });
    this._changed.emit();
    return run;
  }

  /** Write what the widgets of a cell print from now on. */
  followLate(notebook: INotebookModel, cellId: string, saved: IRanksBundle): void {
    if (!FINAL_STATES.has(saved.state) || !mayChange(saved)) {
      return;
    }
    const late = this._late.get(notebook) ?? new Map<string, LateOutput>();
    this._late.set(notebook, late);
    late.get(cellId)?.dispose();
    const authors = this._authorsOf(notebook);
    late.set(cellId, new LateOutput(this._executions, saved, () => findCell(notebook, cellId), authors));
  }

  /** Whether a cell waits for an execution. */
  has(notebook: INotebookModel, cellId: string): boolean {
    return this.executionOf(notebook, cellId) !== undefined;
  }

  /** Whether a cell of a notebook, even a deleted one, waits for an execution. */
  isRunning(notebook: INotebookModel): boolean {
    return this._of(notebook).length > 0;
  }

  /** The execution that a cell waits for. */
  executionOf(notebook: INotebookModel, cellId: string): string | undefined {
    return this._of(notebook).find(run => run.cellId === cellId && !run.isDetached)?.execution.id;
  }

  /** Detach older executions from a cell that is run again. */
  detach(notebook: INotebookModel, cellId: string): void {
    this._of(notebook)
      .filter(run => run.cellId === cellId)
      .forEach(run => run.detach());
    this._late.get(notebook)?.get(cellId)?.dispose();
  }

  /**
   * Handle cells that were moved, deleted, restored or pasted: each run finds its cell again, by the cell's id or, for
   * pasted cells, by the execution in the cell's output.
   */
  follow(notebook: INotebookModel, added: readonly ICodeCellModel[]): void {
    const cells = new Map(codeCells(notebook).map(cell => [cell.id, cell]));
    for (const run of this._of(notebook).filter(run => !run.isDetached)) {
      const cell = cells.get(run.cellId) ?? null;
      if (cell !== run.cell) {
        run.moveTo(cell, notebook);
      }
    }
    for (const cell of added) {
      const id = this.has(notebook, cell.id) || cell.isDisposed ? null : openBundle(cell)?.execution_id;
      const homeless = this.deleted.find(run => run.execution.id === id);
      homeless?.moveTo(cell, notebook);
    }
    this._changed.emit();
  }

  /** Write what is not in the notebook yet: it is about to be saved. */
  flush(notebook: INotebookModel): void {
    this._of(notebook).forEach(run => run.flush());
    this._late.get(notebook)?.forEach(late => late.flush());
  }

  /** Handle a closed notebook: its executions continue, and executions of deleted cells can still be interrupted. */
  release(notebook: INotebookModel): void {
    for (const run of this._of(notebook).filter(run => run.cell !== null || run.isDetached)) {
      this._runs.delete(run);
      run.dispose();
    }
    this._late.get(notebook)?.forEach(late => late.dispose());
    this._late.delete(notebook);
    this._changed.emit();
  }

  /** Interrupt the cells of a notebook, including deleted ones. Rejects like `cancel`. */
  interrupt(notebook: INotebookModel): Promise<void> {
    return this.cancel(this._of(notebook));
  }

  /** Interrupt all runs, even if the request for one fails; then reject with the first error. */
  async cancel(runs: readonly CellRun[]): Promise<void> {
    const groups = new Set(runs.map(run => run.execution.group));
    const answers = [...groups].map(group => this._cancelIn(runs.filter(run => run.execution.group === group)));
    const failed = (await Promise.all(answers)).flat().find(({ status }) => status === 'rejected');
    if (failed) {
      throw (failed as PromiseRejectedResult).reason;
    }
  }

  /** Interrupt runs of a group: queued ones first, so that none starts in between, but running ones soon. */
  private async _cancelIn(runs: readonly CellRun[]): Promise<PromiseSettledResult<void>[]> {
    const ask = ({ execution }: CellRun): Promise<void> => this._executions.cancel(execution.group, execution.id);
    const queued = runs.filter(run => run.execution.state === 'queued').reverse();
    const running = runs.filter(run => run.execution.state !== 'queued');
    const cancelled = Promise.allSettled(queued.map(ask));
    await Promise.race([cancelled, new Promise(resolve => setTimeout(resolve, CANCEL_QUEUED_MS))]);
    const interrupted = Promise.allSettled(running.map(ask));
    return [...(await cancelled), ...(await interrupted)];
  }

  private _of(notebook: INotebookModel): CellRun[] {
    return [...this._runs].filter(run => run.notebook === notebook);
  }

  private _authorsOf: (notebook: INotebookModel) => Authors | null;
  private _changed = new Signal<this, void>(this);
  private _executions: IDistExecutions;
  private readonly _known = new Set<string>();
  private _late = new Map<INotebookModel, Map<string, LateOutput>>();
  private _runs = new Set<CellRun>();
  private readonly _lastQueuedAt = new WeakMap<INotebookModel, number>();
}

export function codeCells(notebook: INotebookModel): ICodeCellModel[] {
  return notebook.isDisposed ? [] : ([...notebook.cells].filter(cell => cell?.type === 'code') as ICodeCellModel[]);
}

/** The current model of the cell with that id; null if it was deleted. */
export function findCell(notebook: INotebookModel, id: string): ICodeCellModel | null {
  return codeCells(notebook).find(cell => cell.id === id) ?? null;
}
