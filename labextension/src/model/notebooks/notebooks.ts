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
import { Authors } from '../cells/output/authors';
import { IUnanswered, RankCellExecutor } from '../cells/executor/cellexecutor';
import { CellOutput, openBundle, savedBundle } from '../cells/output/celloutput';
import { CellRuns, codeCells, findCell } from '../cells/output/cellruns';
import { findAttachments, IAttachment, IFoundCell, IKnownExecutions, lostBundle } from '../cells/output/reattach';
import { checksum } from '../format/checksum';
import { resolveTarget } from '../targets/target';
import { OtherPages } from './otherpages';
import { Views } from './views';

/** How often to retry a group that could not report the state of a cell. */
const ASK_AGAIN_MS = 10000;
/** For two minutes: when a connection is back, TCP delivers the data it still had. */
const LOOKS = 12;

/** The states in which the server may not know all executions of a group: it waits for the group's agent. */
const NOT_TELLING: ReadonlySet<string> = new Set<GroupState>(['resizing', 'unresponsive', 'incompatible']);

export interface INotebooksOptions {
  executions: IDistExecutions;
  groups: IDistGroups;
  service: Pick<IDistService, 'connected' | 'connectionChanged' | 'executions' | 'restarting' | 'starting'>;
}

interface IAttachOptions {
  notebook: INotebookModel;
  cells: readonly ICodeCellModel[];
  /** Resolves when it is known which pages have the notebook; by default, when its authors have settled. */
  settled?: Promise<void>;
  /** What was submitted later is shown, in the server's time; by default, what is newer than the file. */
  since?: number;
  /** How often to look again for cells that were sent to ranks and not answered: what was sent can arrive late. */
  looks?: number;
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
      restarting: name => options.service.restarting(this._groups.find(name)?.id ?? name),
      onRefused: cell => this._refused.emit(cell),
      onUnanswered: cell => this._onUnanswered(cell),
      onAwaitsStart: cell => this._awaitsStart.emit(cell),
      pathOf: notebook => this._files.get(notebook)?.path()
    });
    options.service.connectionChanged.connect(this._onConnection, this);
    new OtherPages({ groups: options.groups, isKnown: id => this._runs.knows(id), look: () => this.look() });
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

  look(): void {
    for (const notebook of this._files.keys()) {
      if (!notebook.collaborative) {
        void this._attachOthers(notebook);
      }
    }
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
    const list = notebook.cells; // which a notebook that is disposed of has not any more
    list.changed.connect(onChanged);
    const authors = new Authors(notebook.sharedModel, notebook.collaborative);
    this._authors.set(notebook, authors);
    authors.changed.connect(() => this._join(notebook, authors));
    void this._attach({ notebook, cells });
    return new DisposableDelegate(() => {
      authors.dispose();
      this._authors.delete(notebook);
      list.changed.disconnect(onChanged);
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
      groupId: run.group.id,
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

  /** Show the execution of a cell whose answer was lost, as soon as the server can be asked and has it. */
  private _onUnanswered(unanswered: IUnanswered): void {
    if (!this._service.connected) {
      this._unanswered.push(unanswered);
      return;
    }
    const { notebook, cellId, since } = unanswered;
    const cell = findCell(notebook, cellId);
    if (cell) {
      void this._attach({ notebook, cells: [cell], since, looks: LOOKS });
    }
  }

  private _onConnection(_: unknown, isConnected: boolean): void {
    if (isConnected) {
      this._unanswered.splice(0).forEach(unanswered => this._onUnanswered(unanswered));
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
      .map(cell => ({ id: cell!.id, bundle: savedBundle(cell!) }))
      .filter(({ bundle }) => wanted.looks === undefined || bundle === null);
    const attachments = findAttachments(found, known, file.path(), since ?? file.savedAt);
    attachments.forEach(at => this._show(notebook, at));
    const listed = new Set(known.executions.map(({ id }) => id));
    for (const { id, bundle } of found) {
      if (bundle && listed.has(bundle.execution_id) && findCell(notebook, id)?.trusted) {
        this._runs.followLate(notebook, id, bundle);
      }
    }
    const shown = new Set(attachments.map(({ id }) => id));
    this._lookAgain(
      wanted,
      found.filter(({ id }) => !shown.has(id)),
      known.silent
    );
  }

  /** Show what other pages have run in cells with the same code. */
  private async _attachOthers(notebook: INotebookModel): Promise<void> {
    const known = await this._ask();
    const file = this._files.get(notebook);
    if (file) {
      // A cell of the kernel *Ranks* runs on ranks, too, and the kernel writes its output.
      const cells = codeCells(notebook).filter(
        cell => resolveTarget(notebook, cell) !== null && !this._runs.has(notebook, cell.id)
      );
      const found = cells.map(cell => ({ id: cell.id, bundle: savedBundle(cell) }));
      const codes = new Map(cells.map(({ id, sharedModel }) => [id, checksum(sharedModel.getSource())]));
      findAttachments(found, known, file.path(), file.savedAt)
        .filter(({ id, execution }) => execution?.code_checksum === codes.get(id) && !this._runs.knows(execution!.id))
        .forEach(at => this._show(notebook, at));
    }
  }

  /** Look again for the executions of these cells, as long as their groups do not answer, or what was sent may arrive. */
  private _lookAgain(wanted: IAttachOptions, cells: readonly IFoundCell[], silent: ReadonlySet<string>): void {
    const isSilent = ({ id, bundle }: IFoundCell): boolean => {
      const isOpen = bundle ? !FINAL_STATES.has(bundle.state) : wanted.looks !== undefined;
      return isOpen && silent.has(bundle?.group.id ?? this._groupOf(wanted.notebook, id));
    };
    if (cells.some(isSilent)) {
      setTimeout(() => void this._attach(wanted), ASK_AGAIN_MS);
    } else if (wanted.looks && cells.length > 0) {
      const looks = wanted.looks - 1;
      setTimeout(() => void this._attach({ ...wanted, looks }), ASK_AGAIN_MS);
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
      // The run trusts the cell if its execution was submitted from this page.
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

  private async _ask(): Promise<IKnownExecutions> {
    const silent = new Set<string>();
    const ask = async ({ id, state }: IGroup): Promise<IExecution[]> => {
      try {
        if (NOT_TELLING.has(state)) {
          silent.add(id);
        }
        return (await this._service.executions(id)).executions;
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
  private _service: Pick<IDistService, 'connected' | 'executions'>;
  private readonly _unanswered: IUnanswered[] = [];
  private readonly _views = new Views<INotebookModel>();
}
