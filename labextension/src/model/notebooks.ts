/** The open notebooks, and what their cells run on ranks. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import { runCell } from '@jupyterlab/notebook';
import type { INotebookCellExecutor, INotebookModel } from '@jupyterlab/notebook';
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import type { IExecution } from '../services/protocol';
import type {
  IDistExecutions,
  IDistGroups,
  IDistNotebooks,
  IDistService,
  INotebookFile
} from '../tokens';
import { readBundle } from './bundle';
import { RankCellExecutor } from './cellexecutor';
import { CellRuns } from './cellruns';
import { findAttachments, IAttachment } from './reattach';

export interface INotebooksOptions {
  executions: IDistExecutions;
  groups: IDistGroups;
  service: Pick<IDistService, 'executions'>;
}

export class NotebooksModel implements IDistNotebooks {
  constructor(options: INotebooksOptions) {
    this._groups = options.groups;
    this._service = options.service;
    this._runs = new CellRuns(options.executions);
    this._runs.changed.connect(this._onRunsChanged, this);
    this._executor = new RankCellExecutor({
      executions: options.executions,
      groups: options.groups,
      runs: this._runs,
      runOnKernel: runCell,
      emptyCache: () => this.emptyCache,
      pathOf: notebook => this._files.get(notebook)?.path()
    });
  }

  emptyCache = false;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get executor(): INotebookCellExecutor {
    return this._executor;
  }

  open(notebook: INotebookModel, file: INotebookFile): IDisposable {
    this._files.set(notebook, file);
    void this._attach(notebook, file);
    return new DisposableDelegate(() => {
      this._files.delete(notebook);
      this._runs.release(codeCells(notebook));
    });
  }

  async interrupt(notebook: INotebookModel): Promise<void> {
    this._executor.abortWaiting(notebook);
    await this._runs.interrupt(codeCells(notebook));
  }

  isRunning(notebook: INotebookModel): boolean {
    return codeCells(notebook).some(cell => this._runs.has(cell));
  }

  /** Show the cells of a notebook from the file what became of them. */
  private async _attach(
    notebook: INotebookModel,
    file: INotebookFile
  ): Promise<void> {
    await this._groups.ready;
    const executions = await this._executionsOf(file.path());
    if (!this._files.has(notebook)) {
      return;
    }
    const cells = new Map(codeCells(notebook).map(cell => [cell.id, cell]));
    // A cell that was run in the meantime knows better than its file.
    const found = [...cells.values()]
      .filter(cell => !this._runs.has(cell))
      .map(cell => ({ id: cell.id, bundle: savedBundle(cell) }));
    for (const at of findAttachments(found, executions, file.savedAt)) {
      this._show(cells.get(at.id)!, at);
    }
  }

  private _show(
    cell: ICodeCellModel,
    { execution, saved }: IAttachment
  ): void {
    const group = this._groups.find(execution.group) ??
      saved?.group ?? { id: execution.group, name: '', world_size: 0 };
    // The cell's trust is left alone: nobody ran it from this page.
    this._runs.start({ cell, group, execution, saved });
  }

  private async _executionsOf(path: string): Promise<IExecution[]> {
    const all = await Promise.all(
      this._groups.groups.map(group =>
        // A group can end at any moment, and then has nothing to tell.
        this._service.executions(group.id).catch(() => [])
      )
    );
    return all.flat().filter(execution => execution.notebook === path);
  }

  private _onRunsChanged(): void {
    this._changed.emit();
  }

  private _changed = new Signal<this, void>(this);
  private _executor: RankCellExecutor;
  private _files = new Map<INotebookModel, INotebookFile>();
  private _groups: IDistGroups;
  private _runs: CellRuns;
  private _service: Pick<IDistService, 'executions'>;
}

function codeCells(notebook: INotebookModel): ICodeCellModel[] {
  return notebook.isDisposed
    ? []
    : ([...notebook.cells].filter(
        cell => cell.type === 'code'
      ) as ICodeCellModel[]);
}

function savedBundle(cell: ICodeCellModel): ReturnType<typeof readBundle> {
  return cell.outputs.length === 1
    ? readBundle(cell.outputs.get(0).toJSON())
    : null;
}
