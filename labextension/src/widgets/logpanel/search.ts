/** Finds text in a log's page and marks it with the CSS highlight API: the page itself is never changed. */
import { ISignal, Signal } from '@lumino/signaling';

const ALL = 'jpd-search';
const CURRENT = 'jpd-search-current';
/** More than this are counted, not marked. */
const MAX_MARKED = 2000;

export class LogSearch {
  constructor(content: HTMLElement) {
    this._content = content;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get query(): string {
    return this._query;
  }
  set query(query: string) {
    if (query !== this._query) {
      this._query = query;
      this._current = -1;
      this.refresh();
      this.move(-1);
    }
  }

  /** The number of matches on the page. */
  get count(): number {
    return this._ranges.length;
  }

  /** The number of the current match, from 1; 0 when there is none. */
  get position(): number {
    return this._current + 1;
  }

  /** Look again: the page has changed. Stays with the current match while it is there. */
  refresh(): void {
    if (this._query === '' && this._ranges.length === 0) {
      return;
    }
    const kept = this._ranges[this._current];
    this._unmark();
    this._ranges = this._query === '' ? [] : find(this._content, this._query);
    this._current = kept ? this._ranges.findIndex(range => isSame(range, kept)) : -1;
    this._mark();
    this._changed.emit();
  }

  /** Go to the next match (1) or the one before (-1), around the ends; brings it in sight. */
  move(step: 1 | -1): void {
    if (this._ranges.length === 0) {
      this._current = -1;
      this._changed.emit();
      return;
    }
    const from = this._current < 0 && step < 0 ? 0 : this._current;
    this._current = (from + step + this._ranges.length) % this._ranges.length;
    this._unmark();
    this._mark();
    const parent = this._ranges[this._current].startContainer.parentElement;
    parent && scrollTo(this._ranges[this._current], parent);
    this._changed.emit();
  }

  dispose(): void {
    this._unmark();
    Signal.clearData(this);
  }

  private _mark(): void {
    this._ranges.slice(0, MAX_MARKED).forEach(range => highlight(ALL)?.add(range));
    const current = this._ranges[this._current];
    if (current) {
      highlight(CURRENT)?.add(current);
    }
  }

  private _unmark(): void {
    for (const range of this._ranges) {
      highlight(ALL)?.delete(range);
      highlight(CURRENT)?.delete(range);
    }
  }

  private readonly _content: HTMLElement;
  private readonly _changed = new Signal<this, void>(this);
  private _query = '';
  private _ranges: Range[] = [];
  private _current = -1;
}

/** All matches, in order; case is ignored. Text is searched across the spans that colours make, not across blocks. */
export function find(content: HTMLElement, query: string): Range[] {
  const pattern = new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi');
  return [...content.children].flatMap(block => findIn(block, pattern));
}

function findIn(block: Element, pattern: RegExp): Range[] {
  const text = block.textContent ?? '';
  const matches = [...text.matchAll(pattern)];
  if (matches.length === 0) {
    return [];
  }
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  let node = walker.nextNode();
  let start = 0;
  // Matches are in order, so that one walk serves them all.
  const locate = (offset: number): [Node, number] | null => {
    while (node && start + (node.nodeValue?.length ?? 0) < offset) {
      start += node.nodeValue?.length ?? 0;
      node = walker.nextNode();
    }
    return node ? [node, offset - start] : null;
  };
  for (const match of matches) {
    const from = locate(match.index);
    const to = locate(match.index + match[0].length);
    if (from && to) {
      const range = document.createRange();
      range.setStart(...from);
      range.setEnd(...to);
      ranges.push(range);
    }
  }
  return ranges;
}

function scrollTo(range: Range, parent: Element): void {
  const scroller = parent.closest('.jpd-LogView');
  if (!scroller || !range.getBoundingClientRect) {
    return;
  }
  const box = range.getBoundingClientRect();
  const frame = scroller.getBoundingClientRect();
  if (box.top < frame.top + 40 || box.bottom > frame.bottom - 20) {
    scroller.scrollTop += box.top - frame.top - frame.height / 2;
  }
}

function isSame(a: Range, b: Range): boolean {
  return a.startContainer === b.startContainer && a.startOffset === b.startOffset;
}

/** The page's registry is shared by all panels: each adds and removes its own ranges. Null in browsers without it. */
function highlight(name: string): Highlight | null {
  if (typeof Highlight === 'undefined' || !CSS.highlights) {
    return null;
  }
  let found = CSS.highlights.get(name);
  if (!found) {
    found = new Highlight();
    found.priority = name === CURRENT ? 1 : 0;
    CSS.highlights.set(name, found);
  }
  return found;
}
