/** The items of a view in order, updated in place to avoid flicker. */
import { Widget } from '@lumino/widgets';
import { sideBySide } from '../../../model/outputs/sidebyside';
import { loaded } from '../../../services/errors';
import { notifyError } from '../../base/errornote';
import { IRowContext, ItemRow } from './itemrow';
import { BlockLayout } from '../blocks/richblock';
import { ScrollBox } from './scrollbox';
import type { IShownItem } from './shown';

/** Time for new rows per frame. */
const FRAME_BUDGET_MS = 40;
/** More than so many side by side are smaller. */
const MANY_BESIDE = 6;

export class ItemList extends Widget {
  constructor(context: Omit<IRowContext, 'layout' | 'enlarge'>) {
    super();
    this.addClass('jpd-RankItems');
    const layout = new BlockLayout();
    this.layout = layout;
    this._context = { ...context, layout, enlarge: key => void this._enlarge(key) };
    this._box = new ScrollBox(this.node);
  }

  /**
   * Show these items. Items of the set `allRanks` are common to all ranks, and
   * have a quiet label. `isGrowing`: more will follow.
   */
  setItems(items: readonly IShownItem[], allRanks: string, isGrowing: boolean): void {
    this._hasGrown ||= isGrowing;
    this._items = items;
    this._allRanks = allRanks;
    this._beside = sideBySide(items);
    this._dropRows();
    this._position = 0;
    this._render();
  }

  dispose(): void {
    if (!this.isDisposed) {
      cancelAnimationFrame(this._frame);
      this._box.dispose();
      super.dispose();
      this._rows.clear();
    }
  }

  private _dropRows(): void {
    const keys = new Set(this._items.map(item => item.key));
    for (const [key, row] of this._rows) {
      if (!keys.has(key)) {
        row.dispose();
        this._rows.delete(key);
      }
    }
  }

  /** Update the rows, in as many frames as needed. */
  private _render(): void {
    cancelAnimationFrame(this._frame);
    const deadline = performance.now() + FRAME_BUDGET_MS;
    while (this._position < this._items.length) {
      this._renderRow(this._position++);
      if (performance.now() > deadline) {
        this._frame = requestAnimationFrame(() => this._render());
        break;
      }
    }
    if (this._position === this._items.length) {
      this._dropGrids();
    }
    this._box.update(this._hasGrown && endsInText(this._items));
  }

  private _renderRow(index: number): void {
    const item = this._items[index];
    const previous = this._items[index - 1];
    let row = this._rows.get(item.key);
    if (!row) {
      row = new ItemRow(this._context);
      this._rows.set(item.key, row);
    }
    const grid = this._gridOf(item);
    const last = previous && (this._gridOf(previous) ?? this._rows.get(previous.key)!.node);
    if (!grid) {
      place(row.node, this.node, last ?? null);
    } else if (grid === last) {
      place(row.node, grid, this._rows.get(previous.key)!.node);
    } else {
      place(grid, this.node, last ?? null);
      place(row.node, grid, null);
    }
    row.update(item, item.ranks === this._allRanks, previous?.ranks === item.ranks);
  }

  /** The element around figures that stand side by side; null for others. */
  private _gridOf({ key }: IShownItem): HTMLElement | null {
    const beside = this._beside.get(key);
    if (!beside) {
      return null;
    }
    let grid = this._grids.get(beside[0].key);
    if (!grid) {
      grid = document.createElement('div');
      grid.className = 'jpd-SideBySide';
      this._grids.set(beside[0].key, grid);
    }
    grid.dataset.size = beside.length > MANY_BESIDE ? 'many' : 'few';
    return grid;
  }

  private _dropGrids(): void {
    for (const [key, grid] of this._grids) {
      if (this._beside.get(key)?.[0].key !== key) {
        grid.remove();
        this._grids.delete(key);
      }
    }
  }

  private async _enlarge(key: string): Promise<void> {
    const item = this._items.find(one => one.key === key);
    if (!item) {
      return;
    }
    const items = this._beside.get(key) ?? [item];
    try {
      const { Lightbox } = await loaded(import(/* webpackChunkName: "lightbox" */ './lightbox'));
      new Lightbox(this._context, items).open(items.indexOf(item));
    } catch (reason) {
      notifyError(reason);
    }
  }

  private _allRanks = '';
  private _beside: ReadonlyMap<string, readonly IShownItem[]> = new Map();
  private _box: ScrollBox;
  private _context: IRowContext;
  private _frame = 0;
  /** By the key of the first item in it. */
  private readonly _grids = new Map<string, HTMLElement>();
  private _hasGrown = false;
  private _items: readonly IShownItem[] = [];
  private _position = 0;
  private _rows = new Map<string, ItemRow>();
}

/** Put a node behind another one, or first. Not again: what is moved loses the focus. */
function place(node: HTMLElement, host: HTMLElement, last: Node | null): void {
  const next = last ? last.nextSibling : host.firstChild;
  if (next !== node) {
    host.insertBefore(node, next);
  }
}

/** Text is read from its end, figures and tables from the start. */
function endsInText(items: readonly IShownItem[]): boolean {
  const type = items[items.length - 1]?.output?.output_type;
  return type === 'stream' || type === 'error';
}
