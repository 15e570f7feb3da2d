/** Finds text in a log's page and marks it with the CSS highlight API, without changing the page. */
import { ISignal, Signal } from '@lumino/signaling';

const ALL = 'jpd-search';
const CURRENT = 'jpd-search-current';
/** Further matches are counted, but not marked. */
const MAX_MARKED = 2000;

/** A match: its range on the page, and its place in its block, which stays valid when the block is rendered again. */
export interface IMatch {
  readonly range: Range;
  readonly block: Element;
  readonly offset: number;
}

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
    return this._matches.length;
  }

  /** The number of the current match, from 1; 0 when there is none. */
  get position(): number {
    return this._current + 1;
  }

  /** Which of how many the last step of the user has found; it stays as the page changes. */
  get found(): string {
    return this._found;
  }

  /** Search again, because the page has changed. Keeps the current match if it still exists. */
  refresh(): void {
    if (this._query === '' && this._matches.length === 0) {
      return;
    }
    const kept = this._matches[this._current];
    this._unmark();
    this._matches = this._query === '' ? [] : find(this._content, this._query);
    this._current = kept ? this._matches.findIndex(match => isSame(match, kept)) : -1;
    this._mark();
    this._changed.emit();
  }

  /** Go to the next (1) or previous (-1) match, wrapping around; scrolls it into view. */
  move(step: 1 | -1): void {
    if (this._matches.length === 0) {
      this._current = -1;
    } else {
      const from = this._current < 0 && step < 0 ? 0 : this._current;
      this._current = (from + step + this._matches.length) % this._matches.length;
      this._unmark();
      this._mark();
      scrollTo(this._matches[this._current]);
    }
    this._found = this._query === '' ? '' : `${this.position}/${this.count}`;
    this._changed.emit();
  }

  dispose(): void {
    this._unmark();
    Signal.clearData(this);
  }

  private _mark(): void {
    this._matches.slice(0, MAX_MARKED).forEach(({ range }) => highlight(ALL)?.add(range));
    const current = this._matches[this._current];
    if (current) {
      highlight(CURRENT)?.add(current.range);
    }
  }

  private _unmark(): void {
    for (const { range } of this._matches) {
      highlight(ALL)?.delete(range);
      highlight(CURRENT)?.delete(range);
    }
  }

  private readonly _content: HTMLElement;
  private readonly _changed = new Signal<this, void>(this);
  private _query = '';
  private _matches: IMatch[] = [];
  private _current = -1;
  private _found = '';
}

/** All matches, in order; ignores case. Searches across the spans of colors, not across blocks. */
export function find(content: HTMLElement, query: string): IMatch[] {
  const pattern = new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi');
  return [...content.children].flatMap(block => findIn(block, pattern));
}

function findIn(block: Element, pattern: RegExp): IMatch[] {
  const text = block.textContent ?? '';
  const matches = [...text.matchAll(pattern)];
  if (matches.length === 0) {
    return [];
  }
  const found: IMatch[] = [];
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  let node = walker.nextNode();
  let start = 0;
  // Matches are in order, so one walk finds them all.
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
      found.push({ range, block, offset: match.index });
    }
  }
  return found;
}

function scrollTo({ range, block }: IMatch): void {
  const scroller = block.closest('.jpd-LogView');
  if (!scroller || !range.getBoundingClientRect) {
    return;
  }
  const box = range.getBoundingClientRect();
  const frame = scroller.getBoundingClientRect();
  if (box.top < frame.top + 40 || box.bottom > frame.bottom - 20) {
    scroller.scrollTop += box.top - frame.top - frame.height / 2;
  }
}

function isSame(a: IMatch, b: IMatch): boolean {
  return a.block === b.block && a.offset === b.offset;
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
