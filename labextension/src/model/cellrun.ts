/** One execution in one cell: keeps the cell's output, prompt and metadata. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IError, IOutput } from '@jupyterlab/nbformat';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import {
  FINAL_STATES,
  IErrorBody,
  IExecution,
  IGroup,
  IRanksBundle
} from '../services/protocol';
import type {
  IDistExecutions,
  IFollowedChange,
  IFollowedExecution,
  IFollower
} from '../tokens';
import { bundleOutput, makeBundle, readBundle } from './bundle';

/** The notebook is written at most this often while a cell runs. */
const WRITE_INTERVAL_MS = 500;
/** ... and not so often that writing takes more than this share of the time. */
const WRITE_SHARE = 0.05;

/** How an execution ended. */
export interface IOutcome {
  execution: IExecution;
  /** What stopped it: a rank's exception, or why it was lost. */
  error: Pick<IError, 'ename' | 'evalue' | 'traceback'> | null;
}

export interface ICellRunOptions {
  executions: IDistExecutions;
  cell: ICodeCellModel;
  group: Pick<IGroup, 'id' | 'name' | 'world_size'>;
  execution: IExecution;
  /** What the cell has from before a reload: shown until the server is heard. */
  saved?: IRanksBundle | null;
  recordTiming?: boolean;
}

export class CellRun implements IDisposable {
  constructor(options: ICellRunOptions) {
    this._options = options;
    this._cell = options.cell;
    this._execution = options.execution;
    this._follower = options.executions.follow(
      options.execution.group,
      options.execution.id
    );
    this.done = this._waitForEnd();
    this._followed.changed.connect(this._onChanged, this);
    this._showPrompt();
    if (!options.saved) {
      this._write();
    }
  }

  /** Resolves when the execution has ended and the cell says so. */
  readonly done: Promise<IOutcome>;

  get cell(): ICodeCellModel {
    return this._cell;
  }

  /** The execution as last heard of. */
  get execution(): IExecution {
    return this._execution;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Leave the cell to somebody else; `done` still resolves. */
  detach(): void {
    this._isDetached = true;
    clearTimeout(this._timer);
  }

  dispose(): void {
    this._isDisposed = true;
    this.detach();
    Signal.clearData(this);
    this._follower.dispose();
  }

  private get _followed(): IFollowedExecution {
    return this._follower.followed;
  }

  /** Whether the cell is still there, and still shows this execution. */
  private get _mayWrite(): boolean {
    return !this._isDetached && !this._cell.isDisposed;
  }

  private async _waitForEnd(): Promise<IOutcome> {
    await this._followed.ended;
    const { execution, error } = this._followed;
    this._execution = execution ?? this._execution;
    const isFinal = FINAL_STATES.has(this._execution.state);
    if (error && !isFinal) {
      this._execution = { ...this._execution, state: 'lost' };
    }
    const reason = error && !isFinal ? lost(error) : this._execution.error;
    const outcome = {
      execution: this._execution,
      error: reason ? asOutput(reason) : firstError(this._followed)
    };
    if (this._mayWrite) {
      this._finish(reason);
    }
    this.dispose();
    return outcome;
  }

  private _onChanged(_: IFollowedExecution, change: IFollowedChange): void {
    if (change.execution && this._followed.execution) {
      this._execution = this._followed.execution;
    }
    if (!this._followed.isEnded && this._timer === undefined) {
      this._timer = setTimeout(() => {
        this._timer = undefined;
        this._write();
      }, this._interval);
    }
  }

  private _finish(error: IErrorBody | null): void {
    clearTimeout(this._timer);
    const { execution, _cell: cell } = this;
    if (execution.state === 'aborted' && (!error || error.code === 'aborted')) {
      // Never ran, because a cell before it failed or it was cancelled.
      cell.outputs.clear();
    } else {
      this._write(error);
    }
    cell.executionCount = execution.execution_count;
    cell.executionState = 'idle';
    if (this._options.recordTiming) {
      recordTiming(cell, execution);
    }
  }

  private _write(error: IErrorBody | null = this._execution.error): void {
    if (!this._mayWrite) {
      return;
    }
    const start = performance.now();
    const { _cell: cell, _execution: execution } = this;
    const { group, saved } = this._options;
    const bundle = makeBundle(group, execution, this._followed.items, error);
    if (this._followed.error && saved && bundle.items.length === 0) {
      // The server knows nothing of it: what was saved is all there is.
      bundle.items = saved.items;
      bundle.statuses = saved.statuses;
    }
    const output = bundleOutput(bundle);
    // Setting re-uses the renderer, so that nothing flickers.
    if (cell.outputs.length === 1 && readBundle(cell.outputs.get(0).toJSON())) {
      cell.outputs.set(0, output);
    } else {
      cell.outputs.clear();
      cell.outputs.add(output);
    }
    if (!this._followed.isEnded) {
      this._showPrompt();
    }
    const took = performance.now() - start;
    this._interval = Math.max(WRITE_INTERVAL_MS, took / WRITE_SHARE);
  }

  /** `[*]`: anew at each write, as JupyterLab clears it when another cell fails. */
  private _showPrompt(): void {
    if (this._cell.executionState !== 'running') {
      this._cell.executionState = 'running';
    }
  }

  private _cell: ICodeCellModel;
  private _execution: IExecution;
  private _follower: IFollower;
  private _interval = WRITE_INTERVAL_MS;
  private _isDetached = false;
  private _isDisposed = false;
  private _options: ICellRunOptions;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** The error of the lowest rank that raised one. */
function firstError(followed: IFollowedExecution): IOutcome['error'] {
  const isError = (output?: IOutput): boolean =>
    output?.output_type === 'error';
  const item = followed.items.find(({ output }) => isError(output));
  return item ? (item.output as IError) : null;
}

function lost(error: IErrorBody): IErrorBody {
  if (error.code !== 'unknown_execution' && error.code !== 'unknown_group') {
    return error;
  }
  return {
    code: 'lost',
    message: 'The server no longer knows this execution; its end was not seen.',
    hint: 'The group was shut down, or the server was started anew. Run the cell again.'
  };
}

/** An error of the product, as an output that any notebook can show. */
export function asOutput({ code, message, hint }: IErrorBody): IError {
  return {
    output_type: 'error',
    ename: code,
    evalue: message,
    traceback: hint ? [message, hint] : [message]
  };
}

/** What JupyterLab records of a kernel's cell, under the same names. */
function recordTiming(cell: ICodeCellModel, execution: IExecution): void {
  const iso = (at: number): string => new Date(at * 1000).toISOString();
  const { started_at: started, ended_at: ended } = execution;
  cell.setMetadata('execution', {
    ...(started
      ? {
          'iopub.status.busy': iso(started),
          'iopub.execute_input': iso(started),
          'shell.execute_reply.started': iso(started)
        }
      : {}),
    ...(ended
      ? { 'shell.execute_reply': iso(ended), 'iopub.status.idle': iso(ended) }
      : {})
  });
}
