/**
 * Renders a log's window: updates the page from the model in small steps. Blocks that were added and removed between two
 * frames are never rendered, so that rendering is not the bottleneck.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import type { LogModel } from './model/log';
import { BlockNode, IBlockContext } from './renderblock';

/** Time for rendering per frame. */
const BUDGET_MS = 12;
/** The page is updated at most this often. */
const INTERVAL_MS = 60;
/** A distance to an end that counts as at the end. */
const NEAR = 8;
const NEAR_TOP = 240;
/** Events with which a user scrolls, and how long a scroll is attributed to them. */
const HANDS = ['wheel', 'keydown', 'pointerdown', 'pointermove', 'touchmove'];
const HAND_MS = 1000;

export class LogView extends Widget {
  constructor(log: LogModel, context: IBlockContext) {
    super();
    this.addClass('jpd-LogView');
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'log');
    // Much output must not flood a screen reader.
    this.node.setAttribute('aria-live', 'off');
    this._content = document.createElement('div');
    this.node.append(this._content);
    this._log = log;
    this._context = context;
    this._resized = new ResizeObserver(() => this._pin());
    this._resized.observe(this._content);
    this._resized.observe(this.node);
    log.changed.connect(this._schedule, this);
    [...HANDS, 'scroll'].forEach(type => this.node.addEventListener(type, this, { passive: true }));
  }

  /** Emitted when the page has changed. */
  get rendered(): ISignal<this, void> {
    return this._rendered;
  }

  /** Emitted when the user scrolls to the top. */
  get topReached(): ISignal<this, void> {
    return this._topReached;
  }

  get followChanged(): ISignal<this, boolean> {
    return this._followChanged;
  }

  /** Whether the page stays at the end. */
  get follow(): boolean {
    return this._follow;
  }
  set follow(follow: boolean) {
    if (follow !== this._follow) {
      this._follow = follow;
      this._followChanged.emit(follow);
    }
    this._pin();
  }

  /** The blocks on the page, for the search. */
  get content(): HTMLElement {
    return this._content;
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    cancelAnimationFrame(this._frame);
    window.clearTimeout(this._timer);
    this._resized.disconnect();
    [...HANDS, 'scroll'].forEach(type => this.node.removeEventListener(type, this));
    this._nodes.forEach(node => node.dispose());
    Signal.clearData(this);
    super.dispose();
  }

  handleEvent(event: Event): void {
    if (event.type === 'scroll') {
      this._onScroll();
      return;
    }
    this._touchedAt = performance.now();
    if (event.type === 'wheel' && (event as WheelEvent).deltaY < 0) {
      // A page that cannot scroll emits no scroll events.
      if (this.node.scrollTop === 0) {
        this._topReached.emit();
      }
      this.follow = this.follow && !this._canScroll();
    }
  }

  protected onAfterShow(): void {
    this._schedule();
    this._pin();
  }

  protected onAfterAttach(): void {
    this._schedule();
  }

  private _onScroll(): void {
    if (this._follow && performance.now() - this._touchedAt > HAND_MS) {
      // Not scrolled by the user: the content shrank while it was rendered again.
      this._pin();
      return;
    }
    const { scrollTop } = this.node;
    const isUp = scrollTop < this._lastTop;
    this._lastTop = scrollTop;
    if (isUp && scrollTop < NEAR_TOP) {
      this._topReached.emit();
    }
    if (isUp && !this._isAtBottom()) {
      this.follow = false;
    } else if (!isUp && this._isAtBottom() && this._log.atEnd) {
      this.follow = true;
    }
  }

  private _isAtBottom(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    return scrollHeight - scrollTop - clientHeight < NEAR;
  }

  private _canScroll(): boolean {
    return this.node.scrollHeight > this.node.clientHeight;
  }

  private _pin(): void {
    if (this._follow) {
      this.node.scrollTop = this.node.scrollHeight;
      this._lastTop = this.node.scrollTop;
    }
  }

  private _schedule(): void {
    if (this._timer === 0 && this._frame === 0 && this.isAttached) {
      const wait = Math.max(0, this._lastSync + INTERVAL_MS - performance.now());
      this._timer = window.setTimeout(() => {
        this._timer = 0;
        this._frame = requestAnimationFrame(() => this._sync());
      }, wait);
    }
  }

  private _sync(): void {
    this._frame = 0;
    this._lastSync = performance.now();
    if (!this.isVisible) {
      return;
    }
    const anchor = this._follow ? null : this._anchor();
    this._removeGone();
    const isComplete = this._renderFromEnd(this._lastSync + BUDGET_MS);
    if (anchor?.node.isConnected) {
      this.node.scrollTop += anchor.node.offsetTop - anchor.top;
      this._lastTop = this.node.scrollTop;
    }
    this._pin();
    this._rendered.emit();
    if (!isComplete) {
      this._schedule();
    }
  }

  private _removeGone(): void {
    const wanted = new Set(this._log.blocks.map(block => block.id));
    for (const [id, node] of this._nodes) {
      if (!wanted.has(id)) {
        node.dispose();
        this._nodes.delete(id);
      }
    }
  }

  /** Render from the end, which the user looks at. Returns false if time ran out. */
  private _renderFromEnd(deadline: number): boolean {
    let next: HTMLElement | null = null;
    for (let i = this._log.blocks.length - 1; i >= 0; i--) {
      const block = this._log.blocks[i];
      let node = this._nodes.get(block.id);
      if (!node || node.version !== block.version) {
        if (performance.now() > deadline) {
          return false;
        }
        node = node ?? this._insert(new BlockNode(block, this._context), block.id, next);
        node.render(block);
      }
      next = node.node;
    }
    return true;
  }

  private _insert(node: BlockNode, id: number, next: HTMLElement | null): BlockNode {
    this._nodes.set(id, node);
    this._content.insertBefore(node.node, next);
    return node;
  }

  /** The first visible block, which must not move when blocks above it change. */
  private _anchor(): { node: HTMLElement; top: number } | null {
    const top = this.node.scrollTop;
    for (const child of this._content.children) {
      const node = child as HTMLElement;
      if (node.offsetTop + node.offsetHeight > top) {
        return { node, top: node.offsetTop };
      }
    }
    return null;
  }

  private readonly _log: LogModel;
  private readonly _context: IBlockContext;
  private readonly _content: HTMLElement;
  private readonly _nodes = new Map<number, BlockNode>();
  private readonly _resized: ResizeObserver;
  private readonly _rendered = new Signal<this, void>(this);
  private readonly _topReached = new Signal<this, void>(this);
  private readonly _followChanged = new Signal<this, boolean>(this);
  private _follow = true;
  private _frame = 0;
  private _timer = 0;
  private _lastSync = 0;
  private _lastTop = 0;
  private _touchedAt = -HAND_MS;
}
