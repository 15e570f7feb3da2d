/** The lanes on a canvas: for each rank its cells, its waits, its memory, and a line. Drawn in slices. */
import type { IRange } from '../model/range';
import type { TimelineModel } from '../model/timeline';
import { drawLane, ILaneStyle, readLaneStyle } from './lane';
import type { ILine, IScales } from './scales';

/** Of the width, for the numbers of ranks. */
export const GUTTER = 60;
const MIN_HEIGHT = 22;
const MAX_HEIGHT = 140;
/** Time for drawing in a frame. The browser fills the shapes afterwards, which takes longer: hence so few lanes, too. */
const SLICE_MS = 8;
const SLICE_LANES = 3;
/** While the range is moved, all lanes are drawn in every frame, with fewer points; after this time as they are. */
const MOVING_MS = 200;
const MOVING_STEP = 8;

export interface ILanesOptions {
  model: TimelineModel;
  range(): IRange;
  line(): ILine;
  /** Of the range. */
  scales(): IScales;
}

export class Lanes {
  constructor(
    private readonly _host: HTMLElement,
    private readonly _options: ILanesOptions
  ) {
    this._canvas.className = 'jpd-Timeline-lanes';
    this._spacer.className = 'jpd-Timeline-spacer';
    this._cursor.className = 'jpd-Timeline-cursor';
    this._brush.className = 'jpd-Timeline-brush';
    this._canvas.setAttribute('aria-hidden', 'true');
    this._brush.hidden = this._cursor.hidden = true;
    this._spacer.append(this._canvas, this._cursor, this._brush);
    _host.append(this._spacer);
    this._resize.observe(_host);
    _host.addEventListener('scroll', this._onScroll);
  }

  /** The width of the time axis in pixels. */
  get width(): number {
    return Math.max(1, this._host.clientWidth - GUTTER);
  }

  /** Whether there are more lanes than can be seen. */
  get scrolls(): boolean {
    return this._num * this._height > this._host.clientHeight + 1;
  }

  /** The rank at a height of the host's visible part, or null. */
  rankAt(y: number): number | null {
    const rank = Math.floor((y + this._host.scrollTop) / this._height);
    return rank >= 0 && rank < this._num ? rank : null;
  }

  /** Show a rank's lane, by scrolling. */
  reveal(rank: number): void {
    const top = rank * this._height;
    const { scrollTop, clientHeight } = this._host;
    if (top < scrollTop || top + this._height > scrollTop + clientHeight) {
      this._host.scrollTop = top - (clientHeight - this._height) / 2;
    }
  }

  /** Mark a rank and a time; null: none. */
  point(rank: number | null, at: number | null): void {
    if (rank !== this._pointed) {
      [rank, this._pointed].filter(one => one !== null).forEach(one => this._dirty.add(one));
      this._pointed = rank;
      this._frame = this._frame || requestAnimationFrame(this._slice);
    }
    const x = at === null ? -1 : this._xOf(at);
    this._cursor.hidden = x < 0 || x > this.width;
    this._cursor.style.left = `${GUTTER + x}px`;
  }

  /** Show what will be seen when the pointer is released; null: nothing. */
  brush(range: IRange | null): void {
    this._brush.hidden = range === null;
    if (range) {
      const left = Math.max(0, this._xOf(range.from));
      this._brush.style.left = `${GUTTER + left}px`;
      this._brush.style.width = `${Math.min(this.width, this._xOf(range.to)) - left}px`;
    }
  }

  /** Draw all that can be seen, from the next frame on. */
  update(): void {
    this._layout();
    const first = Math.floor(this._host.scrollTop / this._height);
    const last = Math.min(this._num, Math.ceil((this._host.scrollTop + this._host.clientHeight) / this._height));
    this._move(this._options.range());
    for (let rank = first; rank < last; rank++) {
      this._dirty.add(rank);
    }
    this._frame = this._frame || requestAnimationFrame(this._slice);
  }

  /** See whether the range is being moved. */
  private _move({ from, to }: IRange): void {
    if (from === this._shown.from && to === this._shown.to) {
      return;
    }
    const now = performance.now();
    const isMoving = now - this._shown.at < MOVING_MS;
    this._shown = { from, to, at: now };
    if (isMoving) {
      this._step = MOVING_STEP;
      clearTimeout(this._rest);
      this._rest = setTimeout(() => {
        this._step = 1;
        this.update();
      }, MOVING_MS);
    }
  }

  /** The colors have changed. */
  rebuild(): void {
    this._style = null;
    this.update();
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    clearTimeout(this._rest);
    this._resize.disconnect();
    this._host.removeEventListener('scroll', this._onScroll);
    this._spacer.remove();
  }

  private _xOf(at: number): number {
    const { from, to } = this._options.range();
    return ((at - from) / (to - from)) * this.width;
  }

  private readonly _onScroll = (): void => this.update();

  /** Lanes fill the height, within limits; the canvas is as high as what can be seen. */
  private _layout(): void {
    this._num = this._options.model.known?.world_size ?? 0;
    const { clientHeight, clientWidth } = this._host;
    const fitting = clientHeight / Math.max(1, this._num);
    this._height = Math.min(MAX_HEIGHT, Math.max(MIN_HEIGHT, Math.floor(fitting)));
    this._spacer.style.height = `${this._num * this._height}px`;
    const ratio = window.devicePixelRatio || 1;
    const height = Math.min(clientHeight, this._num * this._height);
    if (this._canvas.width !== Math.round(clientWidth * ratio) || this._canvas.height !== Math.round(height * ratio)) {
      this._canvas.width = Math.round(clientWidth * ratio);
      this._canvas.height = Math.round(height * ratio);
      this._canvas.style.width = `${clientWidth}px`;
      this._canvas.style.height = `${height}px`;
    }
  }

  /** Draw some lanes; the rest in the next frame. */
  private readonly _slice = (): void => {
    this._frame = 0;
    const context = this._canvas.getContext('2d');
    if (!context || this._host.clientWidth === 0) {
      return;
    }
    const end = performance.now() + SLICE_MS;
    let left = this._step === 1 ? SLICE_LANES : Infinity;
    this._style ??= readLaneStyle(this._host);
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { model, range, line, scales } = this._options;
    const time = { range: range(), width: this.width, gutter: GUTTER, step: this._step };
    const shared = { model, line: line(), scales: scales(), style: this._style, ...time };
    for (const rank of this._dirty) {
      this._dirty.delete(rank);
      const top = rank * this._height - this._host.scrollTop;
      drawLane(context, { ...shared, rank, top, height: this._height, isPointed: rank === this._pointed });
      if (--left === 0 || performance.now() > end) {
        break;
      }
    }
    if (this._dirty.size > 0) {
      this._frame = requestAnimationFrame(this._slice);
    }
  };

  private readonly _brush = document.createElement('div');
  private readonly _canvas = document.createElement('canvas');
  private readonly _cursor = document.createElement('div');
  private readonly _dirty = new Set<number>();
  private _frame = 0;
  private _height = MAX_HEIGHT;
  private _num = 0;
  private _pointed: number | null = null;
  private _rest: ReturnType<typeof setTimeout> | undefined;
  private readonly _resize = new ResizeObserver(() => this.update());
  private _shown = { from: NaN, to: NaN, at: -Infinity };
  private readonly _spacer = document.createElement('div');
  private _step = 1;
  private _style: ILaneStyle | null = null;
}
