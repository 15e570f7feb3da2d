/** Runs the cells of notebooks: on ranks where the notebook says so. */
import type { CodeCell, ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookCellExecutor, INotebookModel, KernelError } from '@jupyterlab/notebook';
import type { DistError } from '../services/errors';
import type { IExecution, IGroup, IRunRequest } from '../services/protocol';
import type { IDistExecutions, IDistGroups } from '../tokens';
import { aborted, failure, refuse } from './cellerrors';
import type { CellRun } from './cellrun';
import type { CellRuns } from './cellruns';
import { CellAborted, CellQueue } from './queue';
import { IRankTarget, resolveTarget } from './target';

type IRunCellOptions = INotebookCellExecutor.IRunCellOptions;

/** The lane of cells that go to the kernel; no group can have that name. */
const KERNEL_LANE = '';

export interface IExecutorOptions {
  executions: IDistExecutions;
  groups: IDistGroups;
  runs: CellRuns;
  /** Runs a cell on the kernel: JupyterLab's own way. */
  runOnKernel: INotebookCellExecutor['runCell'];
  /** Whether cells empty the CUDA cache of the ranks whose memory they changed. */
  emptyCache(): boolean;
  /** Where a notebook lies on the server. */
  pathOf(notebook: INotebookModel): string | undefined;
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
    this._options.runs.detach(model);
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

  /** Stop what waits of a notebook's cells; what runs is not touched. */
  abortWaiting(notebook: INotebookModel): void {
    this._queues.get(notebook)?.abortWaiting();
  }

  private async _enqueueForKernel(
    queue: CellQueue,
    options: IRunCellOptions,
    model: ICodeCellModel
  ): Promise<boolean> {
    if (!queue.isEmpty) {
      // It may have to wait for ranks: show that it is on its way.
      model.executionState = 'running';
    }
    try {
      return await queue.enqueue({
        lane: KERNEL_LANE,
        mayFail: mayRaise(model),
        run: submitted => {
          submitted();
          return this._options.runOnKernel(options);
        }
      });
    } catch (reason) {
      if (reason instanceof CellAborted) {
        model.executionState = 'idle';
        throw aborted(reason);
      }
      throw reason;
    }
  }

  private async _enqueueForRanks(
    queue: CellQueue,
    options: IRunCellOptions,
    model: ICodeCellModel,
    target: IRankTarget
  ): Promise<boolean> {
    const { cell, onCellExecuted, onCellExecutionScheduled } = options;
    prepare(cell as CodeCell, model);
    onCellExecutionScheduled({ cell });
    let error: KernelError | null = null;
    let tolerated = false;
    try {
      await queue.enqueue({
        lane: this._options.groups.find(target.group)?.id ?? target.group,
        mayFail: mayRaise(model),
        run: async submitted => {
          error = await this._runOnRanks(options, model, target, submitted);
          tolerated = error !== null && mayRaise(model);
          if (error && !tolerated) {
            throw error;
          }
          return true;
        }
      });
    } catch (reason) {
      if (reason instanceof CellAborted) {
        model.executionState = 'idle';
        error = aborted(reason);
      } else {
        error = reason as KernelError;
      }
    }
    if (cell.isDisposed) {
      return false;
    }
    onCellExecuted({ cell, success: error === null, error });
    if (error && !tolerated) {
      throw error;
    }
    return true;
  }

  /** The error that it ended with, or null. */
  private async _runOnRanks(
    options: IRunCellOptions,
    model: ICodeCellModel,
    target: IRankTarget,
    submitted: () => void
  ): Promise<KernelError | null> {
    const { notebook, notebookConfig } = options;
    let execution: IExecution;
    try {
      execution = await this._submit(notebook, model, target);
    } catch (reason) {
      return refuse(model, reason as DistError);
    }
    const { recordTiming } = notebookConfig;
    const group = this._describe(execution, target);
    const run = this._options.runs.start({
      cell: model,
      group,
      execution,
      recordTiming
    });
    this._last.set(notebook, run);
    submitted();
    const outcome = await run.done;
    return outcome.execution.state === 'ok' ? null : failure(outcome);
  }

  private async _submit(
    notebook: INotebookModel,
    model: ICodeCellModel,
    target: IRankTarget
  ): Promise<IExecution> {
    const path = this._options.pathOf(notebook);
    const { emptyCache, executions } = this._options;
    const request: IRunRequest = {
      code: model.sharedModel.getSource(),
      ranks: target.ranks,
      cell_id: model.id,
      ...(path === undefined ? {} : { notebook: path }),
      ...(emptyCache() ? { empty_cache: true } : {}),
      stop_on_error: !mayRaise(model)
    };
    const before = this._last.get(notebook);
    if (before && !before.isDisposed) {
      // It may have failed before this one reaches the server.
      request.after = before.execution.id;
    }
    return executions.run(target.group, request);
  }

  private _describe(
    execution: IExecution,
    target: IRankTarget
  ): Pick<IGroup, 'id' | 'name' | 'world_size'> {
    const group = this._options.groups.find(execution.group);
    return group ?? { id: execution.group, name: target.group, world_size: 0 };
  }

  private _queue(notebook: INotebookModel): CellQueue {
    const queue = this._queues.get(notebook) ?? new CellQueue();
    this._queues.set(notebook, queue);
    return queue;
  }

  /** The run submitted last: what the next one comes after. */
  private _last = new WeakMap<INotebookModel, CellRun>();
  private _options: IExecutorOptions;
  private _queues = new WeakMap<INotebookModel, CellQueue>();
}

function clear(model: ICodeCellModel): void {
  model.sharedModel.transact(() => model.clearExecution(), false);
}

/** As a kernel's cell is begun: nothing to undo, trusted, `[*]`. */
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
