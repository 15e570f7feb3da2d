/** A long output scrolls in a box of its own: by keyboard too, and at its end while it grows. */

/** How far from its end a box may be and still be at it, in pixels. */
const NEAR = 4;
const SCROLL_KEYS = ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', ' '];

export class ScrollBox {
  constructor(private _node: HTMLElement) {
    this._observer = new ResizeObserver(() => this._measure());
    this._observer.observe(_node);
    _node.addEventListener('scroll', this._onScroll);
    _node.addEventListener('keydown', this._onKeyDown);
  }

  /** Something was written; `follows`: show the end of it, unless the user looks at something above. */
  update(follows: boolean): void {
    if (follows && this._isPinned) {
      this._node.scrollTop = this._node.scrollHeight;
      this._top = this._node.scrollTop;
    }
    if (!this._scrolls) {
      // The observer is told of the box, which no longer grows once it is full.
      cancelAnimationFrame(this._frame);
      this._frame = requestAnimationFrame(() => this._measure());
    }
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._observer.disconnect();
    this._node.removeEventListener('scroll', this._onScroll);
    this._node.removeEventListener('keydown', this._onKeyDown);
  }

  /** Only a box that scrolls is a stop of the Tab key. */
  private _measure(): void {
    const scrolls = this._node.scrollHeight > this._node.clientHeight + 1;
    if (scrolls !== this._scrolls) {
      this._scrolls = scrolls;
      this._node.classList.toggle('jpd-mod-scrolls', scrolls);
      if (scrolls) {
        this._node.tabIndex = 0;
      } else {
        this._node.removeAttribute('tabindex');
      }
    }
  }

  /** Rows that come into sight get their true height and move what is below: only a way up is the user's. */
  private readonly _onScroll = (): void => {
    const { scrollTop, clientHeight, scrollHeight } = this._node;
    if (scrollTop + clientHeight >= scrollHeight - NEAR) {
      this._isPinned = true;
    } else if (scrollTop < this._top) {
      this._isPinned = false;
    }
    this._top = scrollTop;
  };

  /** The notebook would go to another cell. */
  private readonly _onKeyDown = (event: KeyboardEvent): void => {
    const isPlain = !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey;
    if (this._scrolls && event.target === this._node && isPlain && SCROLL_KEYS.includes(event.key)) {
      event.stopPropagation();
    }
  };

  private _frame = 0;
  private _isPinned = true;
  private _observer: ResizeObserver;
  private _scrolls = false;
  private _top = 0;
}
