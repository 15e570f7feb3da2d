/**
 * The view of one execution as the client holds it: `view` messages applied
 * in order, exactly and idempotently.
 */
import type { IStream } from '@jupyterlab/nbformat';
import type { IViewChange, IViewItem, IViewMessage } from '../../services/protocol';

/** The result of applying a message. */
export type Applied =
  /** The items changed (or at least the cursor). */
  | 'applied'
  /** It brought nothing new. */
  | 'stale'
  /** It builds on something that is not here: ask again from `seq`. */
  | 'gap';

type ViewUpdate = Pick<IViewMessage, 'since' | 'seq' | 'items'> & Partial<Pick<IViewMessage, 'removed' | 'reset'>>;

export class ViewModel {
  /** The cursor: up to where the view is complete. */
  get seq(): number {
    return this._seq;
  }

  /** The items in order. Every change creates a new array; items are not changed in place. */
  get items(): readonly IViewItem[] {
    return this._items;
  }

  /** Apply a message: a difference between two moments, or a whole view. */
  apply(message: ViewUpdate): Applied {
    // A message since the beginning has everything.
    const whole = message.reset === true || message.since === 0;
    if (!whole && message.seq <= this._seq) {
      return 'stale';
    }
    if (!whole && message.since !== this._seq) {
      return 'gap';
    }
    const items = whole ? [] : withoutIds(this._items, message.removed ?? []);
    const ids = whole ? new Set<number>() : this._ids;
    message.removed?.forEach(id => ids.delete(id));
    for (const change of message.items) {
      if (!place(items, ids, change)) {
        this._ids = new Set(this._items.map(({ id }) => id));
        return 'gap';
      }
    }
    this._ids = ids;
    this._items = items;
    this._seq = message.seq;
    return 'applied';
  }

  /** Reset the cursor: the next message must be a whole view. The items stay until then. */
  restart(): void {
    this._seq = 0;
  }

  private _items: readonly IViewItem[] = [];
  private _ids = new Set<number>();
  private _seq = 0;
}

function withoutIds(items: readonly IViewItem[], removed: readonly number[]): IViewItem[] {
  if (removed.length === 0) {
    return [...items];
  }
  const ids = new Set(removed);
  return items.filter(item => !ids.has(item.id));
}

/** Put an item in its place; false if the item that it continues is missing. `ids`: the ids of `items`. */
function place(items: IViewItem[], ids: Set<number>, change: IViewChange): boolean {
  const index = ids.has(change.id) ? lastIndexOf(items, change.id) : -1;
  const known = index < 0 ? null : items[index];
  const item = merged(known, change);
  if (!item) {
    return false;
  }
  ids.add(change.id);
  if (known && isAfter(items, index, change.after)) {
    items[index] = item;
    return true;
  }
  if (known) {
    items.splice(index, 1);
  }
  if (change.after === undefined || change.after === null) {
    // Without `after` a new item goes to the end.
    items.splice(change.after === null ? 0 : items.length, 0, item);
    return true;
  }
  const before = lastIndexOf(items, change.after);
  items.splice(before < 0 ? items.length : before + 1, 0, item);
  return before >= 0;
}

/** Most changes are near the end. */
function lastIndexOf(items: readonly IViewItem[], id: number): number {
  let index = items.length - 1;
  while (index >= 0 && items[index].id !== id) {
    index--;
  }
  return index;
}

function isAfter(items: readonly IViewItem[], index: number, after: number | null | undefined): boolean {
  return after === undefined || (after === null ? index === 0 : items[index - 1]?.id === after);
}

function merged(known: IViewItem | null, change: IViewChange): IViewItem | null {
  const { id, seq, ranks } = change;
  if (change.append !== undefined) {
    if (known?.output?.output_type !== 'stream') {
      return null;
    }
    const text = streamText(known.output as IStream) + change.append;
    return { id, seq, ranks, output: { ...known.output, text } as IStream };
  }
  if (change.elided) {
    return { id, seq, ranks, elided: change.elided };
  }
  const output = change.output ?? known?.output;
  return output ? { id, seq, ranks, output } : null;
}

/** The text of a stream output, which nbformat also allows as a list of lines. */
export function streamText(output: IStream): string {
  return Array.isArray(output.text) ? output.text.join('') : output.text;
}
