/** The open notebooks, and the cells they run on ranks. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import { runCell } from '@jupyterlab/notebook';
import type { INotebookCellExecutor, INotebookModel } from '@jupyterlab/notebook';
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { DistError } from '../../services/errors';
import { FINAL_STATES, GroupState, IExecution, IGroup } from '../../services/protocol';
import type {
  IAwaitingCell,
  IDeletedRun,
  IDistExecutions,
  IDistGroups,
  IDistNotebooks,
  IDistService,
  INotebookFile,
  IRefusedCell
} from '../../tokens';
import { Authors } from './authors';
import { RankCellExecutor } from '../cells/cellexecutor';
import { CellOutput, openBundle, savedBundle } from '../cells/celloutput';
import { CellRuns, codeCells, findCell } from '../cells/cellruns';
import { findAttachments, IAttachment, IFoundCell, IKnown, lostBundle } from '../cells/reattach';
import { resolveTarget } from './target';
import { Views } from './views';

/** How often to retry a group that could not report the state of a cell. */
const ASK_AGAIN_MS = 10000;

/** The states in which the server knows all executions of a group; otherwise it waits for the group's agent. */
const TELLING: ReadonlySet<string> = new Set<GroupState>([
  'starting',
  'ready',
  'degraded',
  'restarting',
  'ending',
  'dead',
  'lost'
]);

export interface INotebooksOptions {
  executions: IDistExecutions;
  groups: IDistGroups;
  service: Pick<IDistService, 'executions' | 'starting' | 'connectionChanged'>;
}

/** A cell that was sent to ranks and not answered: it may be running. */
interface IUnanswered {
  notebook: INotebookModel;
  cellId: string;
  /** What this page had submitted before it, in the server's time; undefined if nothing. */
  since?: number;
}

interface IAttachOptions {
  notebook: INotebookModel;
  cells: readonly ICodeCellModel[];
  /** Resolves when it is known which pages have the notebook; by default, when its authors say so. */
  settled?: Promise<void>;
  /** What was submitted later is shown, in the server's time; by default, what is newer than the file. */
  since?: number;
  /** The cells were sent to ranks, and nothing is known of that. */
  isUnanswered?: boolean;
}

export class NotebooksModel implements IDistNotebooks {
  constructor(options: INotebooksOptions) {
    this._groups = options.groups;
    this._service = options.service;
    this._runs = new CellRuns(options.executions, notebook => this._authors.get(notebook) ?? null);
    this._runs.changed.connect(this._onRunsChanged, this);
    this._executor = new RankCellExecutor({
      executions: options.executions,
      groups: options.groups,
      runs: this._runs,
      runOnKernel: options => this._kernel.runCell(options),
      emptyCache: () => this.emptyCache,
      askFirst: () => this.askFirst,
      starting: name => options.service.starting(name),
      onRefused: cell => this._onRefused(cell),
      onAwaitsStart: cell => this._awaitsStart.emit(cell),
      pathOf: notebook => this._files.get(notebook)?.path()
    });
    options.service.connectionChanged.connect(this._onConnection, this);
  }

  emptyCache = false;

  askFirst: IDistNotebooks['askFirst'] = null;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get refused(): ISignal<this, IRefusedCell> {
    return this._refused;
  }

  get awaitsStart(): ISignal<this, IAwaitingCell> {
    return this._awaitsStart;
  }

  get executor(): INotebookCellExecutor {
    return this._executor;
  }

  runKernelCellsBy(executor: INotebookCellExecutor): void {
    this._kernel = executor;
  }

  open(notebook: INotebookModel, file: INotebookFile): IDisposable {
    return this._views.open(notebook, () => this._open(notebook, file));
  }

  private _open(notebook: INotebookModel, file: INotebookFile): IDisposable {
    this._files.set(notebook, file);
    const cells = codeCells(notebook);
    const seen = new WeakSet(cells);
    const follow = (): void => {
      if (this._files.has(notebook)) {
        this._follow(notebook, seen);
      }
    };
    // After the change, so that what is written is not part of it, and undo does not revert it.
    const onChanged = (): void => void Promise.resolve().then(follow);
    notebook.cells.changed.connect(onChanged);
    const authors = new Authors(notebook.sharedModel, notebook.collaborative);
    this._authors.set(notebook, authors);
    authors.changed.connect(() => this._join(notebook, authors));
    void this._attach({ notebook, cells });
    return new DisposableDelegate(() => {
      authors.dispose();
      this._authors.delete(notebook);
      notebook.cells.changed.disconnect(onChanged);
      this._files.delete(notebook);
      this._executor.release(notebook);
      this._runs.release(notebook);
    });
  }

  abortWaiting(notebook: INotebookModel): void {
    this._executor.abortWaiting(notebook);
  }

  async interrupt(notebook: INotebookModel): Promise<void> {
    this.abortWaiting(notebook);
    await this._runs.interrupt(notebook);
  }

  flush(notebook: INotebookModel): void {
    this._runs.flush(notebook);
  }

  isRunning(notebook: INotebookModel): boolean {
    return this._runs.isRunning(notebook);
  }

  get deleted(): readonly IDeletedRun[] {
    return this._runs.deleted.map(run => ({
      id: run.execution.id,
      group: run.group.name,
      ranks: run.execution.ranks,
      interrupt: () => this._runs.cancel([run])
    }));
  }

  /** Handle changed cells of a notebook: runs find their cells, and new cells show their executions. */
  private _follow(notebook: INotebookModel, seen: WeakSet<ICodeCellModel>): void {
    const added = codeCells(notebook).filter(cell => !seen.has(cell));
    added.forEach(cell => seen.add(cell));
    this._runs.follow(notebook, added);
    const open = added.filter(cell => !this._runs.has(notebook, cell.id) && openBundle(cell));
    if (open.length > 0) {
      void this._attach({ notebook, cells: open });
    }
  }

  private _onRefused(cell: IRefusedCell): void {
    if (cell.code === 'server_unreachable') {
      const { notebook, cellId } = cell;
      this._unanswered.push({ notebook, cellId, since: this._executor.lastQueuedAt(notebook) ?? undefined });
    }
    this._refused.emit(cell);
  }

  /** Show the executions of cells whose answer was lost, now that the server can be asked. */
  private _onConnection(_: unknown, isConnected: boolean): void {
    if (isConnected) {
      for (const { notebook, cellId, since } of this._unanswered.splice(0)) {
        const cell = findCell(notebook, cellId);
        if (cell) {
          void this._attach({ notebook, cells: [cell], since, isUnanswered: true });
        }
      }
    }
  }

  /** Follow executions of other pages: show them live, and write their end if the other page is closed. */
  private _join(notebook: INotebookModel, authors: Authors): void {
    for (const [execution, id] of Object.entries(authors.others)) {
      const cell = findCell(notebook, id);
      if (cell && this._runs.executionOf(notebook, id) !== execution && !this._joined.has(execution)) {
        this._joined.add(execution);
        this._runs.detach(notebook, id);
        // Its author is known: there is nothing to wait for.
        void this._attach({ notebook, cells: [cell], settled: Promise.resolve() });
      }
    }
  }

  /** Reconnect cells, from the file, pasted or unanswered, to their executions. */
  private async _attach(wanted: IAttachOptions): Promise<void> {
    const { notebook, cells, since } = wanted;
    await Promise.all([this._groups.ready, wanted.settled ?? this._authors.get(notebook)?.settled]);
    const known = await this._ask();
    const file = this._files.get(notebook);
    if (!file) {
      return;
    }
    // Skip cells that were run in the meantime.
    const found = cells
      .map(({ id }) => findCell(notebook, id))
      .filter(cell => cell !== null && !this._runs.has(notebook, cell.id))
      .map(cell => ({ id: cell!.id, bundle: savedBundle(cell!) }));
    for (const at of findAttachments(found, known, file.path(), since ?? file.savedAt)) {
      this._show(notebook, at);
    }
    const listed = new Set(known.executions.map(({ id }) => id));
    for (const { id, bundle } of found) {
      if (bundle && listed.has(bundle.execution_id) && findCell(notebook, id)?.trusted) {
        this._runs.followLate(notebook, id, bundle);
      }
    }
    const isSilent = ({ id, bundle }: IFoundCell): boolean => {
      const isOpen = bundle ? !FINAL_STATES.has(bundle.state) : wanted.isUnanswered === true;
      return isOpen && known.silent.has(bundle?.group.id ?? this._groupOf(notebook, id));
    };
    if (found.some(isSilent)) {
      setTimeout(() => void this._attach(wanted), ASK_AGAIN_MS);
    }
  }

  /** The id of the group that a cell would run on; empty if that is not known. */
  private _groupOf(notebook: INotebookModel, cellId: string): string {
    const cell = findCell(notebook, cellId);
    const target = cell && resolveTarget(notebook, cell);
    return (target && this._groups.find(target.group)?.id) ?? '';
  }

  private _show(notebook: INotebookModel, { id, execution, saved }: IAttachment): void {
    if (execution) {
      const group = this._groups.find(execution.group) ??
        saved?.group ?? { id: execution.group, name: '', world_size: 0 };
      // Do not trust the cell: it was not run from this page.
      const run = this._runs.start({ notebook, cellId: id, group, execution, saved });
      void run.done.then(outcome => {
        if (outcome.execution.state === 'lost') {
          this._refused.emit({ notebook, cellId: run.cellId, code: 'lost' });
        }
      });
      return;
    }
    const cell = findCell(notebook, id);
    if (cell && saved && this._authors.get(notebook)?.isAuthor(saved.execution_id)) {
      const output = new CellOutput(cell);
      output.write(lostBundle(saved));
      output.showEnded(cell.executionCount);
      this._refused.emit({ notebook, cellId: id, code: 'lost' });
    }
  }

  private async _ask(): Promise<IKnown> {
    const silent = new Set<string>();
    const ask = async ({ id, state }: IGroup): Promise<IExecution[]> => {
      try {
        if (!TELLING.has(state)) {
          silent.add(id);
        }
        return await this._service.executions(id);
      } catch (reason) {
        // A group can end at any moment, and is then unknown.
        if (!(reason instanceof DistError && reason.code === 'unknown_group')) {
          silent.add(id);
        }
        return [];
      }
    };
    const all = await Promise.all(this._groups.groups.map(ask));
    return { executions: all.flat(), silent };
  }

  private _onRunsChanged(): void {
    this._changed.emit();
  }

  private _authors = new Map<INotebookModel, Authors>();
  private _changed = new Signal<this, void>(this);
  private _executor: RankCellExecutor;
  private _files = new Map<INotebookModel, INotebookFile>();
  private _groups: IDistGroups;
  private _joined = new Set<string>();
  private _kernel: INotebookCellExecutor = { runCell };
  private _refused = new Signal<this, IRefusedCell>(this);
  private _awaitsStart = new Signal<this, IAwaitingCell>(this);
  private _runs: CellRuns;
  private _service: Pick<IDistService, 'executions'>;
  private readonly _unanswered: IUnanswered[] = [];
  private readonly _views = new Views<INotebookModel>();
}
