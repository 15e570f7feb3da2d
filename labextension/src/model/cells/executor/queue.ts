/**
 * The order of a notebook's cells. *Run All* submits every cell at once and
 * relies on the kernel to queue them. With ranks there is more than one queue,
 * and a cell must wait for earlier cells that run elsewhere.
 *
 * Cells of the same lane (the kernel, or one group) are submitted at once: the
 * lane queues and aborts by itself, even if the page is closed.
 */
import { PromiseDelegate } from '@lumino/coreutils';

export interface IQueuedCell {
  /** Where it runs. */
  lane: string;
  /** Its failure does not stop the cells after it. */
  mayFail: boolean;
  /**
   * Run it; call `submitted` when its lane has it. Rejects if the cells
   * after it must not run.
   */
  run(submitted: () => void): Promise<boolean>;
}

/** A cell was not run because an earlier one failed, or because it was cancelled. */
export class CellAborted extends Error {
  constructor(
    message: string,
    readonly isCancelled = false
  ) {
    super(message);
  }
}

/** A cell did not run to its end, or not at all: those after it must not run, whatever it may raise. */
export class CellUnfinished extends Error {
  /** `result`: what its lane returned. */
  constructor(readonly result: boolean) {
    super('The cell did not run to its end.');
  }
}

export class CellQueue {
  /** Whether nothing is waiting or running. */
  get isEmpty(): boolean {
    return this._entries.length === 0;
  }

  /** Run a cell when its turn comes; rejects with CellAborted if it does not. */
  async enqueue(cell: IQueuedCell): Promise<boolean> {
    const epoch = this._epoch;
    const gate = this._gate(cell.lane);
    const entry = new Entry(cell.lane, gate !== null);
    this._entries.push(entry);
    try {
      if (gate) {
        await Promise.race([gate, entry.aborted]);
        entry.isWaiting = false;
        if (this._epoch !== epoch) {
          throw this._isCancelled
            ? new CellAborted('Cancelled before it ran.', true)
            : new CellAborted('A cell before this one failed.');
        }
      }
      return await cell.run(() => entry.submit());
    } catch (reason) {
      if ((!cell.mayFail || reason instanceof CellUnfinished) && this._epoch === epoch) {
        this._isCancelled = false;
        this._epoch++;
      }
      throw reason;
    } finally {
      this._entries = this._entries.filter(other => other !== entry);
      entry.settle();
    }
  }

  /** Abort the cells that wait here, at once; submitted ones are up to their lane. */
  abortWaiting(): void {
    this._isCancelled = true;
    this._epoch++;
    const waiting = this._entries.filter(entry => entry.isWaiting);
    // What is run next waits for what still runs, and not for these.
    this._entries = this._entries.filter(entry => !entry.isWaiting);
    waiting.forEach(entry => entry.abort());
  }

  /**
   * What to wait for, or null. The kernel's cells must not even wait for a
   * microtask, because JupyterLab expects them to be sent at once.
   */
  private _gate(lane: string): Promise<unknown> | null {
    const last = this._entries[this._entries.length - 1];
    if (!last) {
      return null;
    }
    if (last.lane === lane) {
      return last.isSubmitted ? null : last.submitted;
    }
    return Promise.all(this._entries.map(entry => entry.settled));
  }

  private _entries: Entry[] = [];
  private _epoch = 0;
  /** Why the last epoch ended. */
  private _isCancelled = false;
}

class Entry {
  constructor(
    readonly lane: string,
    public isWaiting: boolean
  ) {}

  /** Resolves if it is aborted while it waits. */
  get aborted(): Promise<void> {
    return this._aborted.promise;
  }

  get isSubmitted(): boolean {
    return this._isSubmitted;
  }

  get submitted(): Promise<void> {
    return this._submitted.promise;
  }

  get settled(): Promise<void> {
    return this._settled.promise;
  }

  abort(): void {
    this._aborted.resolve();
  }

  submit(): void {
    this._isSubmitted = true;
    this._submitted.resolve();
  }

  settle(): void {
    this.submit();
    this._settled.resolve();
  }

  private _aborted = new PromiseDelegate<void>();
  private _isSubmitted = false;
  private _settled = new PromiseDelegate<void>();
  private _submitted = new PromiseDelegate<void>();
}
