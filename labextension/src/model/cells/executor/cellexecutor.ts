/** Runs the cells of notebooks, on ranks if the notebook is set to ranks. */
import type { CodeCell, ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookCellExecutor, INotebookModel, KernelError } from '@jupyterlab/notebook';
import { DistError } from '../../../services/errors';
import { IExecution, IGroup, IRunRequest } from '../../../services/protocol';
import { translation } from '../../../services/translation';
import type { IAwaitingCell, IDistExecutions, IDistGroups, IRefusedCell } from '../../../tokens';
import { aborted, failure, passingAdvice, refuse } from './cellerrors';
import type { CellRun } from '../output/cellrun';
import { CellRuns, findCell } from '../output/cellruns';
import { KernelCell } from './kernelcells';
import { CellAborted, CellQueue, CellUnfinished } from './queue';
import { runOptions } from '../../targets/runoptions';
import { IRankTarget, resolveTarget } from '../../targets/target';

type IRunCellOptions = INotebookCellExecutor.IRunCellOptions;

/** Where a cell runs that needs all ranks and was sent to some. */
export type PartialAnswer = 'all' | 'anyway' | 'cancel';

/** The lane of kernel cells; no group can have this name. */
const KERNEL_LANE = '';

export interface IExecutorOptions {
  executions: IDistExecutions;
  groups: IDistGroups;
  runs: CellRuns;
  /** Runs a cell on the kernel: JupyterLab's own way. */
  runOnKernel: INotebookCellExecutor['runCell'];
  /** Whether cells empty the device cache of the ranks whose memory they changed. */
  emptyCache(): boolean;
  /** Asks what to do with a cell that needs all ranks and is for some; null: does not ask. */
  askFirst(): ((message: string) => Promise<PartialAnswer>) | null;
  /** Resolves when the server has answered a start of a group of that name; null if there is none. */
  starting(name: string): Promise<void> | null;
  /** Resolves when the server has answered a restart of the group of that name; null if there is none. */
  restarting(name: string): Promise<void> | null;
  /** Called with a cell that the server refused, or that was lost. */
  onRefused(cell: IRefusedCell): void;
  /** Called with a cell that was sent, and may run all the same. */
  onUnanswered(cell: IUnanswered): void;
  /** Called with a cell that waits for that answer. */
  onAwaitsStart(cell: IAwaitingCell): void;
  /** The path of a notebook on the server. */
  pathOf(notebook: INotebookModel): string | undefined;
}

/** A cell that was sent to ranks and not answered: it may be running. */
export interface IUnanswered {
  readonly notebook: INotebookModel;
  readonly cellId: string;
  /** When the newest run of the notebook that was known then was submitted, in the server's time; undefined if none was. */
  readonly since: number | undefined;
}

export class RankCellExecutor implements INotebookCellExecutor {
  constructor(options: IExecutorOptions) {
    this._options = options;
  }

  runCell(options: IRunCellOptions): Promise<boolean> {
    const { cell, notebook } = options;
    if (cell.model.type !== 'code') {
      return this._options.runOnKernel(options);
    }
    const model = cell.model as ICodeCellModel;
    this._options.runs.detach(notebook, model.id);
    const target = resolveTarget(notebook, model);
    const queue = this._queue(notebook);
    if (!target) {
      return this._enqueueForKernel(queue, options, model);
    }
    if (!model.sharedModel.getSource().trim()) {
      clear(model);
      return Promise.resolve(true);
    }
    return this._enqueueForRanks(queue, options, model, target);
  }

  /** Abort the waiting cells of a notebook; running ones are not affected. */
  abortWaiting(notebook: INotebookModel): void {
    this._queues.get(notebook)?.abortWaiting();
    this._interrupts.set(notebook, (this._interrupts.get(notebook) ?? 0) + 1);
  }

  /** Abort the waiting cells of a closed notebook; a cell that is being submitted is not interrupted. */
  release(notebook: INotebookModel): void {
    this._queues.get(notebook)?.abortWaiting();
  }

  private async _enqueueForKernel(queue: CellQueue, options: IRunCellOptions, model: ICodeCellModel): Promise<boolean> {
    const cell = new KernelCell(options, model, mayRaise(model));
    if (!queue.isEmpty) {
      cell.showWaiting();
    }
    try {
      return await queue.enqueue({
        lane: KERNEL_LANE,
        mayFail: cell.mayFail,
        run: submitted => {
          submitted();
          return cell.run(options => this._options.runOnKernel(options));
        }
      });
    } catch (reason) {
      if (reason instanceof CellUnfinished) {
        return reason.result;
      }
      if (reason instanceof CellAborted) {
        cell.showIdle();
        if (reason.isCancelled) {
          return false;
        }
        throw aborted(reason);
      }
      throw reason;
    } finally {
      cell.release();
    }
  }

  private async _enqueueForRanks(
    queue: CellQueue,
    options: IRunCellOptions,
    model: ICodeCellModel,
    target: IRankTarget
  ): Promise<boolean> {
    const { cell, onCellExecuted, onCellExecutionScheduled } = options;
    const job = newJob(options, model, target, this._batch(options.notebook));
    let error: KernelError | null = null;
    let tolerated = false;
    let isCancelled = false;
    // It is sent before the page works on the cell, and answered afterwards.
    const ended = queue.enqueue({
      lane: this._options.groups.find(target.group)?.id ?? target.group,
      mayFail: job.mayFail,
      run: async submitted => {
        error = await this._runOnRanks(job, submitted);
        tolerated = error !== null && job.mayFail;
        if (error && !tolerated) {
          throw error;
        }
        return true;
      }
    });
    prepare(cell as CodeCell, model);
    onCellExecutionScheduled({ cell });
    try {
      await ended;
    } catch (reason) {
      if (reason instanceof CellAborted) {
        error = this._notRun(job, reason);
        ({ isCancelled } = reason);
      } else {
        error = reason as KernelError;
      }
    }
    if (cell.isDisposed) {
      return false;
    }
    onCellExecuted({ cell, success: error === null, error });
    if (isCancelled) {
      return false; // as for a kernel's: JupyterLab takes a rejection for the end of all cells of *Run All*
    }
    if (error && !tolerated) {
      throw error;
    }
    return true;
  }

  /** The error that it ended with, or null. */
  private async _runOnRanks(job: IJob, submitted: () => void): Promise<KernelError | null> {
    const { notebook, cellId, code, target, recordTiming } = job;
    const { runs } = this._options;
    const interrupts = this._interrupts.get(notebook);
    const since = runs.lastQueuedAt(notebook);
    let execution: IExecution;
    try {
      execution = await this._submit(job);
    } catch (reason) {
      if (reason instanceof CellAborted) {
        idle(job);
        return aborted(reason);
      }
      const { code = '', isUnanswered } = reason as DistError;
      const advice = passingAdvice(reason as DistError);
      const error = refuse(findCell(notebook, cellId), reason as DistError);
      if (isUnanswered) {
        this._options.onUnanswered({ notebook, cellId, since });
      }
      this._options.onRefused({ notebook, cellId, code, advice });
      return error;
    }
    const group = this._describe(execution, target);
    const run = runs.start({ notebook, cellId, code, group, execution, recordTiming, isSubmitted: true });
    this._last.set(notebook, run);
    submitted();
    if (interrupts !== this._interrupts.get(notebook)) {
      // The notebook was interrupted while the cell was being submitted.
      runs.cancel([run]).catch(reason => console.warn('jupyter_dist: could not interrupt a cell', reason));
    }
    const outcome = await run.done;
    if (outcome.execution.state === 'lost') {
      this._options.onRefused({ notebook, cellId: run.cellId, code: 'lost' });
    }
    return outcome.execution.state === 'ok' ? null : failure(outcome);
  }

  /** Submit it; if it needs all ranks and is for some, ask. Rejects with CellAborted if the answer is not to run it. */
  private async _submit(job: IJob): Promise<IExecution> {
    const { executions, askFirst } = this._options;
    const { group } = job.target;
    // A group that was started a moment ago may not be known to the server yet.
    const answered = this._options.starting(group);
    if (answered) {
      this._options.onAwaitsStart({ notebook: job.notebook, cellId: job.cellId, group, answered });
      await answered;
    }
    // It would overtake a restart that is on its way, and run in the processes that the user has ended.
    const restarted = this._options.restarting(group);
    if (restarted) {
      await restarted;
    }
    const ask = askFirst();
    const known = job.batch.answer;
    const request = this._request(job);
    if (!ask || known === 'anyway') {
      return executions.run(group, request);
    }
    try {
      return await executions.run(group, { ...request, ask_first: true });
    } catch (reason) {
      if ((reason as DistError).code !== 'needs_all_ranks') {
        throw reason;
      }
      const answer = known ?? (await ask((reason as DistError).message));
      job.batch.answer = answer;
      if (answer === 'cancel') {
        throw new CellAborted('Cancelled.');
      }
      return executions.run(group, answer === 'all' ? { ...request, ranks: 'all' } : request);
    }
  }

  /** Show that it will not run; a kernel's cell shows nothing else either after a cell that failed. */
  private _notRun(job: IJob, reason: CellAborted): KernelError {
    idle(job);
    const cell = findCell(job.notebook, job.cellId);
    return reason.isCancelled
      ? refuse(
          cell,
          new DistError({ code: 'cancelled', message: translation().__('Cancelled before it ran.'), hint: '' })
        )
      : aborted(reason);
  }

  private _request({ notebook, cellId, code, target, mayFail }: IJob): IRunRequest {
    const path = this._options.pathOf(notebook);
    const before = this._last.get(notebook);
    return {
      code,
      ranks: target.ranks,
      cell_id: cellId,
      ...(path === undefined ? {} : { notebook: path }),
      ...(this._options.emptyCache() ? { empty_cache: true } : {}),
      ...runOptions(notebook),
      allow_stdin: true,
      stop_on_error: !mayFail,
      // The earlier one may fail before this one reaches the server.
      ...(before && !before.isDisposed ? { after: before.execution.id } : {})
    };
  }

  private _describe(execution: IExecution, target: IRankTarget): Pick<IGroup, 'id' | 'name' | 'world_size'> {
    const group = this._options.groups.find(execution.group);
    return group ?? { id: execution.group, name: target.group, world_size: 0 };
  }

  private _queue(notebook: INotebookModel): CellQueue {
    const queue = this._queues.get(notebook) ?? new CellQueue();
    this._queues.set(notebook, queue);
    return queue;
  }

  /** The cells that are run together at this moment: *Run All* runs all in one task. */
  private _batch(notebook: INotebookModel): IBatch {
    const batch = this._batches.get(notebook) ?? { answer: null };
    if (!this._batches.has(notebook)) {
      this._batches.set(notebook, batch);
      setTimeout(() => this._batches.delete(notebook));
    }
    return batch;
  }

  private _batches = new WeakMap<INotebookModel, IBatch>();
  /** How often each notebook was interrupted. */
  private _interrupts = new WeakMap<INotebookModel, number>();
  /** The run submitted last, which the next one comes after. */
  private _last = new WeakMap<INotebookModel, CellRun>();
  private _options: IExecutorOptions;
  private _queues = new WeakMap<INotebookModel, CellQueue>();
}

/** Cells that one command runs. */
interface IBatch {
  /** The answer about cells that need all ranks: one is asked for the others, too. */
  answer: PartialAnswer | null;
}

/** A cell as it was when it was run; it may be moved, changed or deleted before its turn. */
interface IJob {
  readonly notebook: INotebookModel;
  readonly cellId: string;
  readonly code: string;
  readonly target: IRankTarget;
  readonly mayFail: boolean;
  readonly recordTiming: boolean;
  readonly batch: IBatch;
}

function newJob(options: IRunCellOptions, model: ICodeCellModel, target: IRankTarget, batch: IBatch): IJob {
  return {
    notebook: options.notebook,
    cellId: model.id,
    code: model.sharedModel.getSource(),
    target,
    mayFail: mayRaise(model),
    recordTiming: options.notebookConfig.recordTiming === true,
    batch
  };
}

/** Show that it will not run: `[ ]`, wherever the cell is now. */
function idle({ notebook, cellId }: IJob): void {
  const cell = findCell(notebook, cellId);
  if (cell) {
    cell.executionState = 'idle';
  }
}

function clear(model: ICodeCellModel): void {
  model.sharedModel.transact(() => model.clearExecution(), false);
}

/** Prepare a cell like for a kernel: no undo, trusted, `[*]`. */
function prepare(cell: CodeCell, model: ICodeCellModel): void {
  model.sharedModel.transact(
    () => {
      model.clearExecution();
      cell.outputHidden = false;
    },
    false,
    'silent-change'
  );
  model.executionState = 'running';
  model.trusted = true;
}

/** JupyterLab's cell tag: an exception is expected here. */
function mayRaise(model: ICodeCellModel): boolean {
  const tags = model.getMetadata('tags');
  return Array.isArray(tags) && tags.includes('raises-exception');
}
