/** A scroll box for long output: usable by keyboard, and follows the end while it grows. */

/** A distance to the end, in pixels, that counts as at the end. */
const NEAR = 4;
const SCROLL_KEYS = ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', ' '];

export class ScrollBox {
  constructor(private _node: HTMLElement) {
    this._observer = new ResizeObserver(() => {
      this._isDrawn = true;
      this._measure();
    });
    this._observer.observe(_node);
    _node.addEventListener('scroll', this._onScroll);
    _node.addEventListener('keydown', this._onKeyDown);
  }

  /** Update after new output; `follows`: scroll to the end, unless the user has scrolled up. */
  update(follows: boolean): void {
    if (follows && this._isPinned) {
      this._node.scrollTop = this._node.scrollHeight;
      this._top = this._node.scrollTop;
    }
    // Out of sight the browser skips an output: to measure it would lay it out, and the observer fires when it is drawn.
    if (!this._scrolls && this._isDrawn) {
      // The observer only sees the box, which stops growing when it is full.
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

  /** Only a box that scrolls is a tab stop. */
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

  /** Rows that become visible get their real height and move the content below: only upward scrolls come from the user. */
  private readonly _onScroll = (): void => {
    const { scrollTop, clientHeight, scrollHeight } = this._node;
    if (scrollTop + clientHeight >= scrollHeight - NEAR) {
      this._isPinned = true;
    } else if (scrollTop < this._top) {
      this._isPinned = false;
    }
    this._top = scrollTop;
  };

  /** Otherwise the notebook would move to another cell. */
  private readonly _onKeyDown = (event: KeyboardEvent): void => {
    const isPlain = !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey;
    if (this._scrolls && event.target === this._node && isPlain && SCROLL_KEYS.includes(event.key)) {
      event.stopPropagation();
    }
  };

  private _frame = 0;
  private _isDrawn = false;
  private _isPinned = true;
  private _observer: ResizeObserver;
  private _scrolls = false;
  private _top = 0;
}
