/** The models of rank pickers: where the cells of a notebook or a console run. */
import type { ICellModel } from '@jupyterlab/cells';
import type { INotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import { ChangingModel } from '../../model/changing';
import { formatRanks, parseRanks } from '../../model/format/ranks';
import {
  CellTarget,
  getCellTarget,
  getNotebookTarget,
  METADATA_KEY,
  resolveTarget,
  setCellTarget,
  setNotebookTarget,
  Target
} from '../../model/targets/target';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups, IDistStarter, IReadWanted, IWantedGroup } from '../../tokens';

/** Where cells run, and what can be chosen. Emits `changed` when anything that a picker shows may have changed. */
export abstract class TargetModel extends ChangingModel {
  constructor(groups: IDistGroups, starter: IDistStarter) {
    super();
    this._groups = groups;
    this._starter = starter;
    // It also follows the groups.
    starter.changed.connect(this.emitChanged, this);
  }

  /** The notebook, or the cells of a console; null while it is loaded. */
  protected abstract readonly notebook: INotebookModel | null;
  /** The active cell, which may have its own target. */
  protected abstract readonly activeCell: ICellModel | null;
  /** The cells that a choice for cells is for. */
  protected abstract selectedCells(): ICellModel[];
  /** Whether single cells can have their own target. */
  abstract readonly hasCellTargets: boolean;

  get groups(): readonly IGroup[] {
    return this._groups.groups;
  }

  /** Whether the picker applies to the selected cells only. */
  get isOverride(): boolean {
    const cell = this.activeCell;
    return cell !== null && getCellTarget(cell) !== undefined;
  }

  /** The target of the active cell. */
  get target(): Target {
    const { notebook, activeCell } = this;
    if (!notebook) {
      return null;
    }
    return activeCell ? resolveTarget(notebook, activeCell) : getNotebookTarget(notebook);
  }

  /** The group of the target, if it is running. */
  get group(): IGroup | null {
    const { target } = this;
    return target ? this._groups.find(target.group) : null;
  }

  /** The group of the target that is not running, and what would start it; null: it runs, or it is not known whether. */
  get missing(): { name: string; read: IReadWanted } | null {
    const { target } = this;
    const { notebook } = this;
    return target && notebook && this._starter.isMissing(target.group)
      ? { name: target.group, read: this._starter.wantedBy(notebook, target.group) }
      : null;
  }

  /** Whether this page has asked for the group of the target, and does not know it yet. */
  get isStarting(): boolean {
    const { target } = this;
    return target !== null && this._starter.isStarting(target.group);
  }

  /** The numbers of ranks that a new group can be started with. */
  get sizes(): readonly number[] {
    return this._starter.sizes;
  }

  /** The chosen ranks; empty when the expression does not fit the group. */
  get ranks(): readonly number[] {
    const { target, group } = this;
    try {
      return target && group ? parseRanks(target.ranks, group) : [];
    } catch {
      return [];
    }
  }

  /** Run cells on a group, or on the kernel; keeps the chosen ranks if possible. */
  chooseGroup(group: IGroup | null): void {
    if (group === null) {
      this._setter()(null);
    } else {
      this.groupChoice()(group);
    }
  }

  /** The same for a group that is started first: it is for the notebook or the cells that the picker applies to now. */
  groupChoice(): (group: IGroup) => void {
    const ranks = this.target?.ranks ?? 'all';
    const set = this._setter();
    return group =>
      set({ group: group.name, ranks: fits(ranks, group) ? ranks : 'all' }, this._starter.describe(group));
  }

  /** Run cells on these ranks. Throws a DistError if the expression is invalid. */
  chooseExpression(expression: string): void {
    this.expressionChoice()(expression);
  }

  /** The same for an expression that is entered later: it is for the notebook or the cells that the picker applies to now. */
  expressionChoice(): (expression: string) => void {
    const { target } = this;
    const set = this._setter();
    return expression => {
      const group = target && this._groups.find(target.group);
      if (group) {
        parseRanks(expression, group);
      }
      if (target) {
        set({ group: target.group, ranks: expression.trim() });
      }
    };
  }

  /**
   * Add or remove a rank. If all were chosen, choose only this one; if none is
   * left, choose all.
   */
  toggleRank(rank: number): void {
    this.toggleRanks([rank]);
  }

  /** The same for several ranks at once; they are removed if all of them were chosen. */
  toggleRanks(toggled: readonly number[]): void {
    const { group, ranks } = this;
    if (!group) {
      return;
    }
    const isAll = ranks.length === group.world_size && ranks.length > toggled.length;
    const chosen = new Set(isAll ? [] : ranks);
    const isRemoved = toggled.every(rank => chosen.has(rank));
    toggled.forEach(rank => (isRemoved ? chosen.delete(rank) : chosen.add(rank)));
    const all = chosen.size === 0 || chosen.size === group.world_size;
    this.chooseExpression(all ? 'all' : formatRanks(chosen));
  }

  /** Set a target for the selected cells, or clear it. */
  setOverride(on: boolean): void {
    const { target } = this;
    for (const cell of this.selectedCells()) {
      setCellTarget(cell, on ? own(target) : undefined);
    }
  }

  /** What sets the target of the notebook or the cells that the picker applies to now, whichever is active by then. */
  private _setter(): (target: Target, wanted?: IWantedGroup) => void {
    const { notebook } = this;
    if (!this.isOverride) {
      return (target, wanted) => notebook && setNotebookTarget(notebook, target, wanted);
    }
    const cells = this.selectedCells();
    return target => cells.filter(cell => !cell.isDisposed).forEach(cell => setCellTarget(cell, own(target)));
  }

  private _groups: IDistGroups;
  private _starter: IDistStarter;
}

/** The model of a notebook's rank picker. */
export class PickerModel extends TargetModel {
  constructor(panel: NotebookPanel, groups: IDistGroups, starter: IDistStarter) {
    super(groups, starter);
    this._panel = panel;
    const { content } = panel;
    content.activeCellChanged.connect(this._onActiveCell, this);
    content.selectionChanged.connect(this.emitChanged, this);
    content.modelChanged.connect(this._onModel, this);
    panel.disposed.connect(this.dispose, this);
    this._onModel();
    this._onActiveCell();
  }

  readonly hasCellTargets = true;

  protected get notebook(): INotebookModel | null {
    return this._panel.content.model;
  }

  protected get activeCell(): ICellModel | null {
    return this._panel.content.activeCell?.model ?? null;
  }

  protected selectedCells(): ICellModel[] {
    const { content } = this._panel;
    return content.widgets
      .filter(cell => content.isSelectedOrActive(cell))
      .map(cell => cell.model)
      .filter(model => model.type === 'code');
  }

  private _onModel(): void {
    const { model } = this._panel.content;
    model?.metadataChanged.connect(this._onMetadata, this);
    this.emitChanged();
  }

  private _onActiveCell(): void {
    const { content } = this._panel;
    if (this._cellModel && !this._cellModel.isDisposed) {
      this._cellModel.metadataChanged.disconnect(this._onMetadata, this);
    }
    this._cellModel = content.activeCell?.model ?? null;
    this._cellModel?.metadataChanged.connect(this._onMetadata, this);
    this.emitChanged();
  }

  private _onMetadata(_: unknown, { key }: { key?: string }): void {
    if (key === METADATA_KEY) {
      this.emitChanged();
    }
  }

  private _cellModel: ICellModel | null = null;
  private _panel: NotebookPanel;
}

/** A target as a cell keeps it. */
function own(target: Target): CellTarget {
  return target ? { ...target } : { target: 'kernel' };
}

function fits(expression: string, group: IGroup): boolean {
  try {
    return parseRanks(expression, group).length > 0;
  } catch {
    return false;
  }
}
