/** Pointer, wheel and keyboard on the lanes: zoom, pan, choose a rank and a time, open a cell. */
import { bandAt, IBand, neighbour } from '../model/bands';
import { ALL, choose, IChoice, IRange, pan, rangeOf, zoom } from '../model/range';
import type { TimelineModel } from '../model/timeline';
import { GUTTER, Lanes } from './lanes';

const DRAG_PIXELS = 4;
/** A click this near hits a band: bands of short cells are thin. */
const HIT_PIXELS = 4;
const CLOSER = 0.7;
const PAN_SHARE = 0.2;

/** What is pointed at. */
export interface ITimelinePoint {
  readonly rank: number | null;
  /** Null: nothing. */
  readonly at: number | null;
}

export interface IHandsOptions {
  model: TimelineModel;
  lanes: Lanes;
  full(): IRange;
  choice(): IChoice;
  place(): ITimelinePoint;
  onChoose(choice: IChoice): void;
  onPoint(place: ITimelinePoint): void;
  onOpen(rank: number, band: IBand | null): void;
}

export class Hands {
  constructor(
    private readonly _host: HTMLElement,
    private readonly _options: IHandsOptions
  ) {
    for (const [type, listener] of Object.entries(this._listeners)) {
      _host.addEventListener(type, listener as EventListener, { passive: false });
    }
  }

  dispose(): void {
    for (const [type, listener] of Object.entries(this._listeners)) {
      this._host.removeEventListener(type, listener as EventListener);
    }
  }

  private get _full(): IRange {
    return this._options.full();
  }

  private get _range(): IRange {
    return rangeOf(this._options.choice(), this._full);
  }

  private _timeAt(x: number): number {
    const { from, to } = this._range;
    return from + ((x - GUTTER) / this._options.lanes.width) * (to - from);
  }

  private _placeOf(event: MouseEvent): { x: number; rank: number | null; at: number } {
    const box = this._host.getBoundingClientRect();
    const x = event.clientX - box.left;
    return { x, rank: this._options.lanes.rankAt(event.clientY - box.top), at: this._timeAt(x) };
  }

  private readonly _listeners = {
    pointerdown: (event: PointerEvent): void => {
      const { x, at } = this._placeOf(event);
      if (event.button === 0 && x >= GUTTER && event.target !== this._host) {
        this._drag = { x, at };
        this._host.setPointerCapture(event.pointerId);
      }
    },
    pointermove: (event: PointerEvent): void => {
      const place = this._placeOf(event);
      const { lanes } = this._options;
      if (this._drag && Math.abs(place.x - this._drag.x) > DRAG_PIXELS) {
        lanes.brush(ordered(this._drag.at, place.at));
      }
      this._point(place.rank, place.x >= GUTTER ? place.at : null);
    },
    pointerleave: (): void => this._point(null, null),
    pointercancel: (): void => {
      this._drag = null;
      this._options.lanes.brush(null);
    },
    pointerup: (event: PointerEvent): void => {
      const drag = this._drag;
      this._drag = null;
      this._options.lanes.brush(null);
      const { x, rank, at } = this._placeOf(event);
      if (drag && Math.abs(x - drag.x) > DRAG_PIXELS) {
        this._options.onChoose(choose(ordered(drag.at, at), this._full));
      } else if (drag && rank !== null) {
        this._open(rank, at);
      }
    },
    dblclick: (): void => this._options.onChoose(ALL),
    wheel: (event: WheelEvent): void => this._onWheel(event),
    keydown: (event: KeyboardEvent): void => this._onKey(event)
  };

  /** With Ctrl, or if there is nothing to scroll, the wheel zooms; sideways it moves. */
  private _onWheel(event: WheelEvent): void {
    const { choice, onChoose, lanes } = this._options;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey || (!lanes.scrolls && !sideways)) {
      event.preventDefault();
      onChoose(
        zoom(choice(), this._full, Math.exp(Math.max(-100, Math.min(100, event.deltaY)) / 200), this._placeOf(event).at)
      );
    } else if (sideways) {
      event.preventDefault();
      onChoose(pan(choice(), this._full, sideways / lanes.width));
    }
  }

  private _onKey(event: KeyboardEvent): void {
    const { choice, onChoose } = this._options;
    const { _full: full } = this;
    const place = this._options.place();
    const middle = place.at ?? (this._range.from + this._range.to) / 2;
    const acts: Record<string, () => void> = {
      '+': () => onChoose(zoom(choice(), full, CLOSER, middle)),
      '=': () => onChoose(zoom(choice(), full, CLOSER, middle)),
      '-': () => onChoose(zoom(choice(), full, 1 / CLOSER, middle)),
      '0': () => onChoose(ALL),
      Home: () => onChoose(ALL),
      End: () => onChoose({ ...choice(), to: null }),
      ArrowLeft: () => (event.shiftKey ? this._toCell(-1) : onChoose(pan(choice(), full, -PAN_SHARE))),
      ArrowRight: () => (event.shiftKey ? this._toCell(1) : onChoose(pan(choice(), full, PAN_SHARE))),
      ArrowUp: () => this._toRank(-1),
      ArrowDown: () => this._toRank(1),
      Enter: () => place.rank !== null && this._open(place.rank, middle),
      Escape: () => this._point(null, null)
    };
    // Where nothing is pointed at, Escape leaves the panel.
    const isLeft = event.key === 'Escape' && place.rank === null && place.at === null;
    const act = event.ctrlKey || event.metaKey || event.altKey || isLeft ? undefined : acts[event.key];
    if (act) {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  }

  private _toRank(step: number): void {
    const { rank: before, at } = this._options.place();
    const last = (this._options.model.known?.world_size ?? 1) - 1;
    const rank = Math.min(last, Math.max(0, (before ?? (step > 0 ? -1 : 1)) + step));
    this._options.lanes.reveal(rank);
    this._point(rank, at);
  }

  /** Point at the begin of the next or the last cell of the rank, and move there. */
  private _toCell(step: 1 | -1): void {
    const { model, onChoose } = this._options;
    const place = this._options.place();
    const rank = place.rank ?? 0;
    const from = place.at ?? (step > 0 ? -Infinity : Infinity);
    const band = neighbour(model.bands(rank), from, step);
    if (!band) {
      return;
    }
    const { from: first, to: last } = this._range;
    if (band.begin < first || band.begin > last) {
      const half = (last - first) / 2;
      onChoose(choose({ from: band.begin - half, to: band.begin + half }, this._full));
    }
    this._point(rank, band.begin);
  }

  private _open(rank: number, at: number): void {
    const { model, lanes, onOpen } = this._options;
    const { from, to } = this._range;
    const within = (HIT_PIXELS / lanes.width) * (to - from);
    onOpen(rank, bandAt(model.bands(rank), at, within, model.now()));
  }

  private _point(rank: number | null, at: number | null): void {
    this._options.onPoint({ rank, at });
  }

  private _drag: { x: number; at: number } | null = null;
}

function ordered(one: number, other: number): IRange {
  return { from: Math.min(one, other), to: Math.max(one, other) };
}
