/** One execution in one cell: updates the cell's output, prompt and metadata, even if the cell is moved. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IError, IOutput } from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import { PromiseDelegate } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { BUNDLE_FIELDS, FINAL_STATES, IErrorBody, IExecution, IGroup, IRanksBundle } from '../../../services/protocol';
import type { IDistExecutions, IFollowedChange, IFollowedExecution, IFollower } from '../../../tokens';
import type { Authors } from './authors';
import { checksum } from '../../format/checksum';
import { makeBundle } from '../../outputs/bundle';
import { asOutput, CellOutput, openBundle, savedBundle } from './celloutput';
import { lostError } from './reattach';

/**
 * How long after a change the notebook is written while a cell runs: soon at first, then less and less often, because
 * each write takes the whole output. Nothing is missing in a saved file: what is left is written before it is saved.
 */
const WRITE_INTERVAL_MS = 500;
const MAX_INTERVAL_MS = 8000;
/** A cell that has not written anything by then shows that it is queued or runs. Most short cells have ended by then: their output is drawn once. */
const FIRST_MS = 60;
/** Pages that share a notebook have it saved by the server, at any time. */
const MAX_SHARED_MS = 2000;
/** Writing takes at most this share of the time. */
const WRITE_SHARE = 0.05;

/** How an execution ended. */
export interface ICellOutcome {
  execution: IExecution;
  /** Why it failed: a rank's exception, or why it was lost. */
  error: Pick<IError, 'ename' | 'evalue' | 'traceback'> | null;
}

export interface ICellRunOptions {
  executions: IDistExecutions;
  /** The pages that have the notebook, one of which writes; null if only this one has it. */
  authors: Authors | null;
  notebook: INotebookModel;
  /** The id of the cell; its model changes when the cell is moved, deleted or restored. */
  cellId: string;
  /** The current model of the cell; null if it was deleted. */
  cell: ICodeCellModel | null;
  group: Pick<IGroup, 'id' | 'name' | 'world_size'>;
  execution: IExecution;
  /** The saved output from before a reload, shown until the server answers. */
  saved?: IRanksBundle | null;
  recordTiming?: boolean;
  /** The source of the cell, as this page submitted it. */
  code?: string;
}

export class CellRun implements IDisposable {
  constructor(options: ICellRunOptions) {
    this._options = options;
    this._notebook = options.notebook;
    this._cellId = options.cellId;
    this._output = options.cell && new CellOutput(options.cell);
    this._execution = options.execution;
    const ran = options.code === undefined ? options.saved?.code_checksum : checksum(options.code);
    this._checksum = ran ? { code_checksum: ran } : {};
    this._follower = options.executions.follow(options.execution.group, options.execution.id);
    this.done = this._waitForEnd();
    this._followed.changed.connect(this._onChanged, this);
    if (this._mayWrite) {
      this._output?.showRunning();
    }
    if (!options.saved && !this._hasEnded) {
      this._writeIn(FIRST_MS);
    }
  }

  /** Resolves when the execution has ended and the cell shows it, or this was disposed because the notebook was closed. */
  readonly done: Promise<ICellOutcome>;

  get notebook(): INotebookModel {
    return this._notebook;
  }

  get cellId(): string {
    return this._cellId;
  }

  /** The current model of the cell; null while it is deleted. */
  get cell(): ICodeCellModel | null {
    return this._output?.cell ?? null;
  }

  get group(): ICellRunOptions['group'] {
    return this._options.group;
  }

  /** The last known state of the execution. */
  get execution(): IExecution {
    return this._execution;
  }

  /** Whether the cell was left to another run. */
  get isDetached(): boolean {
    return this._isDetached;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Set the new model of the cell, in this notebook or another; null if it was deleted. */
  moveTo(cell: ICodeCellModel | null, notebook: INotebookModel): void {
    this._notebook = notebook;
    this._cellId = cell?.id ?? this._cellId;
    this._output = cell && new CellOutput(cell);
    if (!this._hasEnded) {
      this._write();
    }
  }

  /** Write what is not in the notebook yet: it is about to be saved. */
  flush(): void {
    if ((this._timer !== undefined || this._isAwaited) && !this._isDetached) {
      this._write();
    }
  }

  /** Leave the cell to another run; `done` still resolves. */
  detach(): void {
    this._isDetached = true;
    this._cancelWrite();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    if (!this._isWritten) {
      this.flush(); // what runs on is in the notebook that is closed
    }
    this.detach();
    Signal.clearData(this);
    this._follower.dispose();
    this._left.resolve();
  }

  private get _followed(): IFollowedExecution {
    return this._follower.followed;
  }

  private async _waitForEnd(): Promise<ICellOutcome> {
    // What waits for this run must not wait forever.
    await Promise.race([this._followed.ended, this._left.promise]);
    const { execution, error } = this._followed;
    this._execution = execution ?? this._execution;
    const isFinal = FINAL_STATES.has(this._execution.state);
    if (error && !isFinal) {
      this._execution = { ...this._execution, state: 'lost' };
    }
    const reason = error && !isFinal ? lostError(error) : this._execution.error;
    const outcome = {
      execution: this._execution,
      error: reason ? asOutput(reason) : firstError(this._followed)
    };
    if (await this._isLeftToUs()) {
      this._finish(error && isFinal ? error : reason); // its end is known, and its output did not come
    }
    this.dispose();
    return outcome;
  }

  /** Whether this run, on this page, writes the cell. */
  private get _mayWrite(): boolean {
    return !this._isDetached && this._output !== null && (this._options.authors?.isAuthor(this._execution.id) ?? true);
  }

  /** Resolves to whether this page must write the end; a page that is closed leaves it to the next. */
  private async _isLeftToUs(): Promise<boolean> {
    const { authors, saved } = this._options;
    const isOpen = (): boolean => {
      const cell = this.cell;
      return cell !== null && openBundle(cell)?.execution_id === this._execution.id;
    };
    if (!authors?.isShared || (this._mayWrite && (saved === undefined || this._isNowhere))) {
      return true;
    }
    while (!authors.isDisposed && !this._isDetached && isOpen()) {
      if (this._mayWrite) {
        return true;
      }
      await new Promise(resolve => setTimeout(resolve, WRITE_INTERVAL_MS));
    }
    // The other page has written it.
    return false;
  }

  /** Whether the notebook was opened without anything of the execution, and no page has written any since. */
  private get _isNowhere(): boolean {
    const { cell } = this;
    return this._options.saved === null && cell !== null && savedBundle(cell)?.execution_id !== this._execution.id;
  }

  private _onChanged(_: IFollowedExecution, change: IFollowedChange): void {
    if (change.execution && this._followed.execution) {
      this._execution = this._followed.execution;
    }
    if (!this._followed.isEnded && this._mayWrite) {
      this._output?.showRunning();
    }
    if (this._hasEnded) {
      return; // the whole output comes within a moment, and is drawn once
    }
    if (this._timer === undefined) {
      this._writeIn(this._interval);
    } else if (!this._isWritten && change.items) {
      // The first output, in the frame that draws it. A hidden page has no frames: the timer is for that.
      cancelAnimationFrame(this._frame);
      this._frame = requestAnimationFrame(() => this._write());
    }
  }

  private _writeIn(ms: number): void {
    this._timer = setTimeout(() => this._write(), ms);
  }

  private _cancelWrite(): void {
    clearTimeout(this._timer);
    this._timer = undefined;
    if (this._frame) {
      cancelAnimationFrame(this._frame);
      this._frame = 0;
    }
  }

  private _finish(error: IErrorBody | null): void {
    this._cancelWrite();
    if (!this._mayWrite || !this._output) {
      return;
    }
    const { execution } = this;
    if (execution.state === 'aborted' && (!error || error.code === 'aborted')) {
      // Never ran, because an earlier cell failed: leave the cell like a kernel would.
      this._output.clear();
    } else {
      this._write(error);
    }
    this._output.showEnded(execution.execution_count);
    if (this._options.recordTiming) {
      this._output.recordTiming(execution);
    }
  }

  private _write(error: IErrorBody | null = this._execution.error): void {
    this._cancelWrite();
    if (!this._mayWrite || !this._output) {
      return;
    }
    this._isWritten = true;
    const start = performance.now();
    const { group, saved } = this._options;
    const bundle = makeBundle(group, this._execution, this._followed.items, error);
    Object.assign(bundle, this._checksum, this._ofParts);
    const kept = this._isUnknown && bundle.items.length === 0 ? (saved ?? null) : null;
    if (kept) {
      Object.assign(bundle, { items: kept.items, statuses: kept.statuses });
    } else {
      this._trust(this._output); // first: else JupyterLab draws what is there again
    }
    if (this._isAwaited) {
      bundle.state = 'running'; // who opens the notebook asks for the output again
    }
    this._output.write(bundle);
    if (!this._followed.isEnded) {
      this._output.showRunning();
    }
    const took = performance.now() - start;
    const longest = this._options.authors?.isShared ? MAX_SHARED_MS : MAX_INTERVAL_MS;
    this._interval = Math.max(Math.min(this._interval * 2, longest), took / WRITE_SHARE);
  }

  /** The fields of parts of a running cell, for pages that do not trust it and follow its output only. */
  private get _ofParts(): Partial<IRanksBundle> {
    const { _execution: execution } = this;
    const fields = this._options.authors?.isShared && execution.state === 'running' ? BUNDLE_FIELDS : [];
    return Object.fromEntries(fields.filter(name => execution[name]).map(name => [name, execution[name]]));
  }

  /** Whether the execution has ended, as far as the server has sent. */
  private get _hasEnded(): boolean {
    return this._followed.isEnded || FINAL_STATES.has(this._execution.state);
  }

  /** Whether it has ended, and its output is still to come. */
  private get _isAwaited(): boolean {
    return this._hasEnded && !this._followed.isEnded;
  }

  /** Whether the server has not answered, or does not know the execution. */
  private get _isUnknown(): boolean {
    return this._followed.error !== null || this._followed.execution === null;
  }

  /** Trust a cell that was run from this page, maybe before a reload, or before a move that made another cell of it. */
  private _trust(output: CellOutput): void {
    if (this._options.executions.isOwn(this._execution.id)) {
      output.trust();
    }
  }

  private _cellId: string;
  private readonly _checksum: { code_checksum?: string };
  private _execution: IExecution;
  private _follower: IFollower;
  private _frame = 0;
  private _interval = WRITE_INTERVAL_MS / 2; // before the first write, which is at once
  private _isDetached = false;
  private _isDisposed = false;
  /** Whether the cell shows something of this run. */
  private _isWritten = false;
  private readonly _left = new PromiseDelegate<void>();
  private _notebook: INotebookModel;
  private _options: ICellRunOptions;
  private _output: CellOutput | null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** The error of the lowest rank that raised one. */
function firstError(followed: IFollowedExecution): ICellOutcome['error'] {
  const isError = (output?: IOutput): boolean => output?.output_type === 'error';
  const item = followed.items.find(({ output }) => isError(output));
  return item ? (item.output as IError) : null;
}
