/** The items of a view in order, updated in place to avoid flicker. */
import { Widget } from '@lumino/widgets';
import { IRowContext, ItemRow } from './itemrow';
import { BlockLayout } from './blocks/richblock';
import { ScrollBox } from './scrollbox';
import type { IShownItem } from './shown';

/** Time for new rows per frame. */
const FRAME_BUDGET_MS = 40;

export class ItemList extends Widget {
  constructor(context: Omit<IRowContext, 'layout'>) {
    super();
    this.addClass('jpd-RankItems');
    const layout = new BlockLayout();
    this.layout = layout;
    this._context = { ...context, layout };
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
    const next = previous
      ? this._rows.get(previous.key)!.node.nextSibling
      : this.node.firstChild;
    if (next !== row.node) {
      this.node.insertBefore(row.node, next);
    }
    row.update(
      item,
      item.ranks === this._allRanks,
      previous?.ranks === item.ranks
    );
  }

  private _allRanks = '';
  private _box: ScrollBox;
  private _context: IRowContext;
  private _frame = 0;
  private _hasGrown = false;
  private _items: readonly IShownItem[] = [];
  private _position = 0;
  private _rows = new Map<string, ItemRow>();
}

/** Text is read from its end, figures and tables from the start. */
function endsInText(items: readonly IShownItem[]): boolean {
  const type = items[items.length - 1]?.output?.output_type;
  return type === 'stream' || type === 'error';
}
