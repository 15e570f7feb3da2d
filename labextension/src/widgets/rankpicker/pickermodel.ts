/** The model of a notebook's rank picker: where its cells run. */
import type { Cell, ICellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
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
} from '../../model/notebooks/target';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';

/** Emits `changed` when anything that the picker shows may have changed. */
export class PickerModel extends ChangingModel {
  constructor(panel: NotebookPanel, groups: IDistGroups) {
    super();
    this._panel = panel;
    this._groups = groups;
    const { content } = panel;
    groups.changed.connect(this.emitChanged, this);
    content.activeCellChanged.connect(this._onActiveCell, this);
    content.selectionChanged.connect(this.emitChanged, this);
    content.modelChanged.connect(this._onModel, this);
    panel.disposed.connect(this.dispose, this);
    this._onModel();
    this._onActiveCell();
  }

  get groups(): readonly IGroup[] {
    return this._groups.groups;
  }

  /** Whether the picker applies to the selected cells only. */
  get isOverride(): boolean {
    const cell = this._activeCell;
    return cell !== null && getCellTarget(cell.model) !== undefined;
  }

  /** The target of the active cell. */
  get target(): Target {
    const { model } = this._panel.content;
    const cell = this._activeCell?.model;
    if (!model) {
      return null;
    }
    return cell ? resolveTarget(model, cell) : getNotebookTarget(model);
  }

  /** The group of the target, if it is running. */
  get group(): IGroup | null {
    const { target } = this;
    return target ? this._groups.find(target.group) : null;
  }

  /** The chosen ranks; empty when the expression does not fit the group. */
  get ranks(): readonly number[] {
    const { target, group } = this;
    try {
      return target && group ? parseRanks(target.ranks, group.world_size) : [];
    } catch {
      return [];
    }
  }

  /** Run cells on a group, or on the kernel; keeps the chosen ranks if possible. */
  chooseGroup(group: IGroup | null): void {
    if (group === null) {
      this._set(null);
      return;
    }
    const ranks = this.target?.ranks ?? 'all';
    this._set({ group: group.name, ranks: fits(ranks, group) ? ranks : 'all' });
  }

  /** Run cells on these ranks. Throws a DistError if the expression is invalid. */
  chooseExpression(expression: string): void {
    const { target, group } = this;
    if (target) {
      if (group) {
        parseRanks(expression, group.world_size);
      }
      this._set({ group: target.group, ranks: expression.trim() });
    }
  }

  /**
   * Add or remove a rank. If all were chosen, choose only this one; if none is
   * left, choose all.
   */
  toggleRank(rank: number): void {
    const { group, ranks } = this;
    if (!group) {
      return;
    }
    const isAll = ranks.length === group.world_size && ranks.length > 1;
    const chosen = isAll
      ? [rank]
      : ranks.includes(rank)
        ? ranks.filter(other => other !== rank)
        : [...ranks, rank];
    const isNone = chosen.length === 0;
    const all = isNone || new Set(chosen).size === group.world_size;
    this.chooseExpression(all ? 'all' : formatRanks(chosen));
  }

  /** Set a target for the selected cells, or clear it. */
  setOverride(on: boolean): void {
    const { target } = this;
    for (const cell of this._selectedCells()) {
      setCellTarget(cell, on ? own(target) : undefined);
    }
  }

  private get _activeCell(): Cell | null {
    return this._panel.content.activeCell;
  }

  private _selectedCells(): ICellModel[] {
    const { content } = this._panel;
    return content.widgets
      .filter(cell => content.isSelectedOrActive(cell))
      .map(cell => cell.model)
      .filter(model => model.type === 'code');
  }

  private _set(target: Target): void {
    const { model } = this._panel.content;
    if (!model) {
      return;
    }
    if (this.isOverride) {
      for (const cell of this._selectedCells()) {
        setCellTarget(cell, own(target));
      }
    } else {
      setNotebookTarget(model, target);
    }
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
  private _groups: IDistGroups;
  private _panel: NotebookPanel;
}

/** A target as a cell keeps it. */
function own(target: Target): CellTarget {
  return target ? { ...target } : { target: 'kernel' };
}

function fits(expression: string, group: IGroup): boolean {
  try {
    return parseRanks(expression, group.world_size).length > 0;
  } catch {
    return false;
  }
}
