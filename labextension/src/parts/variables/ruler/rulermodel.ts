/**
 * Where the ranks of a notebook began to differ. Output and ends of cells are read from the notebook and from
 * cells that are followed; variables are asked for between cells, while the notebook is visible, and compared by checksums.
 */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { savedBundle } from '../../../model/cells/output/celloutput';
import { codeCells } from '../../../model/cells/output/cellruns';
import { ChangingModel } from '../../../model/changing';
import { getNotebookTarget } from '../../../model/targets/target';
import { VariablesModel } from '../model/variables';
import type { IRanksBundle } from '../../../services/protocol';
import type { IDistExecutions, IDistGroups, IDistHeaderNotes, IDistService, IFollowedExecution } from '../../../tokens';
import { fromBundle, fromFollowed, IShown } from '../../../widgets/rankoutput/items/shown';
import { differenceOf, differencesIn, IDifference } from './differences';

/** Changes are read together: a cell that prints changes all the time. */
const READ_MS = 500;

export interface IMark {
  readonly cell: ICodeCellModel;
  /** When the cell began, in seconds; null: not known. */
  readonly at: number | null;
  readonly differences: readonly IDifference[];
}

interface IRun {
  readonly group: string;
  readonly at: number | null;
  readonly differences: readonly IDifference[];
}

export interface IRulerOptions {
  readonly service: IDistService;
  readonly groups: IDistGroups;
  readonly executions: IDistExecutions;
  readonly headerNotes: IDistHeaderNotes;
  readonly notebook: INotebookModel;
  readonly trans: TranslationBundle;
}

export class RulerModel extends ChangingModel {
  constructor(private readonly _options: IRulerOptions) {
    super();
    const { notebook, executions, groups } = _options;
    notebook.cells.changed.connect(this._onCells, this);
    executions.followed.connect(this._onFollowed, this);
    groups.changed.connect(this._chooseGroup, this);
    this._onCells();
  }

  /** The cells in which ranks differ, in the order of the notebook. */
  get marks(): readonly IMark[] {
    return this._marks;
  }

  /** The cell in which ranks began to differ: the earliest, else the first of the notebook. */
  get first(): IMark | null {
    const when = ({ at }: IMark): number => at ?? Infinity;
    return this._marks.reduce<IMark | null>((best, mark) => (best && when(best) <= when(mark) ? best : mark), null);
  }

  /** Whether anybody sees it; else nothing is read and no rank is asked. */
  setVisible(isVisible: boolean): void {
    this._isVisible = isVisible;
    this._variables?.setVisible(isVisible);
    this._schedule();
  }

  dispose(): void {
    clearTimeout(this._timer);
    this._variables?.dispose();
    Signal.disconnectReceiver(this);
    super.dispose();
  }

  private _onCells(): void {
    for (const cell of codeCells(this._options.notebook)) {
      if (!this._known.has(cell)) {
        this._known.add(cell);
        cell.outputs.changed.connect(() => this._forget(cell), this);
      }
    }
    this._schedule();
  }

  private _onFollowed(_: unknown, execution: string): void {
    const followed = this._options.executions.find(execution);
    followed?.changed.connect(() => {
      const cell = codeCells(this._options.notebook).find(({ id }) => id === followed.execution?.cell_id);
      if (cell) {
        this._forget(cell);
      }
    }, this);
  }

  private _forget(cell: ICodeCellModel): void {
    this._runs.delete(cell);
    this._schedule();
  }

  private _schedule(): void {
    if (this._isVisible && !this.isDisposed) {
      this._timer ??= setTimeout(() => {
        this._timer = undefined;
        this._read();
      }, READ_MS);
    }
  }

  private _read(): void {
    const { notebook } = this._options;
    if (!this._isVisible || this.isDisposed || notebook.isDisposed) {
      return;
    }
    this._chooseGroup();
    const cells = codeCells(notebook);
    const named = this._nameVariables(cells);
    const marks: IMark[] = [];
    for (const cell of cells) {
      const run = this._runOf(cell);
      const differences = [...(run?.differences ?? []), ...(named.get(cell) ?? [])];
      if (differences.length > 0) {
        marks.push({ cell, at: run?.at ?? null, differences });
      }
    }
    this._marks = marks;
    this.emitChanged();
  }

  private _runOf(cell: ICodeCellModel): IRun | null {
    let run = this._runs.get(cell);
    if (run === undefined) {
      const bundle = savedBundle(cell);
      // As in its output: an untrusted file could name any execution.
      const followed = bundle && cell.trusted ? this._options.executions.find(bundle.execution_id) : null;
      run = bundle && this._differencesOf(bundle, followed);
      this._runs.set(cell, run);
    }
    return run;
  }

  private _differencesOf(bundle: IRanksBundle, followed: IFollowedExecution | null): IRun {
    const isLive = followed?.execution && followed.items.length >= bundle.items.length;
    const shown: IShown = isLive ? fromFollowed(followed, bundle) : fromBundle(bundle);
    const execution = followed?.execution;
    const found = execution ? this._options.headerNotes.items.flatMap(part => part.differences?.(execution) ?? []) : [];
    const differences = shown.state === 'running' ? [] : differencesIn(this._options.trans, shown, found);
    return { group: bundle.group.id, at: shown.startedAt, differences };
  }

  /** Follow the variables of the group that the notebook runs on. */
  private _chooseGroup(): void {
    const { service, groups, notebook } = this._options;
    const target = notebook.isDisposed ? null : getNotebookTarget(notebook)?.group;
    const group = target ? groups.find(target) : null;
    if (group?.id === this._variables?.group) {
      return;
    }
    this._variables?.dispose();
    this._homes.clear();
    this._variables = group ? new VariablesModel(service, groups, group.id) : null;
    this._variables?.changed.connect(this._schedule, this);
    this._variables?.setVisible(this._isVisible);
  }

  /**
   * Find the cell of each variable that differs: where it was when the difference was found first, the first cell that
   * has run since the last look and has its name.
   */
  private _nameVariables(cells: readonly ICodeCellModel[]): Map<ICodeCellModel, IDifference[]> {
    const found = new Map<ICodeCellModel, IDifference[]>();
    const { listed = null, group = '' } = this._variables ?? {};
    if (!listed) {
      return found;
    }
    const ran = cells.filter(cell => this._runOf(cell)?.group === group && this._isOfProcesses(cell, group));
    const recent = ran.filter(cell => (this._runOf(cell)?.at ?? 0) > this._lookedAt);
    const isNew = listed.at !== this._listedAt;
    const differing = new Set<string>();
    for (const variable of listed.answer.variables) {
      const difference = differenceOf(this._options.trans, variable);
      if (difference) {
        differing.add(variable.name);
        const known = this._homes.get(variable.name);
        const home = known && ran.includes(known) ? known : homeOf(variable.name, recent, ran);
        if (home) {
          this._homes.set(variable.name, home);
          found.set(home, [...(found.get(home) ?? []), difference]);
        }
      }
    }
    [...this._homes.keys()].filter(name => !differing.has(name)).forEach(name => this._homes.delete(name));
    if (isNew) {
      this._listedAt = listed.at;
      this._lookedAt = Math.max(0, ...ran.map(cell => this._runOf(cell)?.at ?? 0));
    }
    return found;
  }

  /** Whether the cell ran since the group's ranks were started. */
  private _isOfProcesses(cell: ICodeCellModel, group: string): boolean {
    return (this._runOf(cell)?.at ?? 0) >= (this._options.groups.find(group)?.started_at ?? 0);
  }

  /** By variable that differs. */
  private readonly _homes = new Map<string, ICodeCellModel>();
  private _isVisible = false;
  private readonly _known = new WeakSet<ICodeCellModel>();
  private _listedAt = 0;
  /** When the last cell began that had run at the last look. */
  private _lookedAt = 0;
  private _marks: readonly IMark[] = [];
  private readonly _runs = new WeakMap<ICodeCellModel, IRun | null>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _variables: VariablesModel | null = null;
}

/** The first of the cells that has the name, the recent ones before all. */
function homeOf(
  name: string,
  recent: readonly ICodeCellModel[],
  all: readonly ICodeCellModel[]
): ICodeCellModel | undefined {
  const isWord = new RegExp(`(?<![\\p{L}\\p{N}_.])${name.replace(/[^\p{L}\p{N}_]/gu, '\\$&')}(?![\\p{L}\\p{N}_])`, 'u');
  const hasName = (cell: ICodeCellModel): boolean => isWord.test(cell.sharedModel.getSource());
  return recent.find(hasName) ?? all.find(hasName);
}
