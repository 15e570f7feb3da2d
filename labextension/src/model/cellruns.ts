/** The executions that cells of this page wait for. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import { ISignal, Signal } from '@lumino/signaling';
import type { IDistExecutions } from '../tokens';
import { CellRun, ICellRunOptions } from './cellrun';

export class CellRuns {
  constructor(executions: IDistExecutions) {
    this._executions = executions;
  }

  /** Emitted when a run begins or ends. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Show an execution in a cell until it ends. */
  start(options: Omit<ICellRunOptions, 'executions'>): CellRun {
    this.detach(options.cell);
    const run = new CellRun({ executions: this._executions, ...options });
    this._runs.add(run);
    void run.done.then(() => {
      this._runs.delete(run);
      this._changed.emit();
    });
    this._changed.emit();
    return run;
  }

  /** Whether a cell waits for an execution. */
  has(cell: ICodeCellModel): boolean {
    return [...this._runs].some(run => run.cell === cell);
  }

  /** The cell is run anew: older executions no longer write into it. */
  detach(cell: ICodeCellModel): void {
    for (const run of this._runs) {
      if (run.cell === cell) {
        run.detach();
      }
    }
  }

  /** These cells are gone; their executions go on without them. */
  release(cells: readonly ICodeCellModel[]): void {
    for (const run of [...this._runs]) {
      // A closed notebook has already disposed of its cells.
      if (cells.includes(run.cell) || run.cell.isDisposed) {
        this._runs.delete(run);
        run.dispose();
      }
    }
  }

  /**
   * Interrupt what these cells run. What is queued goes first, so that
   * nothing starts in between.
   */
  async interrupt(cells: readonly ICodeCellModel[]): Promise<void> {
    const runs = [...this._runs].filter(run => cells.includes(run.cell));
    const queued = runs.filter(run => run.execution.state === 'queued');
    const running = runs.filter(run => run.execution.state !== 'queued');
    for (const { execution } of [...queued.reverse(), ...running]) {
      await this._executions.cancel(execution.group, execution.id);
    }
  }

  private _changed = new Signal<this, void>(this);
  private _executions: IDistExecutions;
  private _runs = new Set<CellRun>();
}
