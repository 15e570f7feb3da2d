/**
 * The server's clock, and a tick to redraw running times. Times in messages are the server's; the clock of a browser on
 * another machine may differ by minutes. Live messages show by how much: they are only delayed by the network, so the
 * smallest difference seen is the offset.
 */
import { ISignal, Signal } from '@lumino/signaling';

const BEAT_MS = 500;

/** Ticks only while it is held. */
export class Clock {
  constructor(local: () => number = () => Date.now() / 1000) {
    this._local = local;
  }

  get ticked(): ISignal<this, void> {
    return this._ticked;
  }

  /** The server's time now, in seconds. */
  now(): number {
    return this._local() - Math.min(this._offset ?? 0, this._bound);
  }

  /** How long ago the server's time `at` was; never negative, and 0 where it is not known. */
  since(at: number | null): number {
    return at === null ? 0 : Math.max(0, this.now() - at);
  }

  /** Update the offset from the time of a message that was just sent. */
  observe(at: number): void {
    const offset = this._local() - at;
    this._offset = this._offset === null ? offset : Math.min(this._offset, offset);
  }

  /** A time on the server's clock, however long ago: the clock is not before it. */
  passed(at: number): void {
    this._bound = Math.min(this._bound, this._local() - at);
  }

  /** Keep ticking until the returned function is called. */
  hold(): () => void {
    this._holders += 1;
    this._timer ??= setInterval(() => this._ticked.emit(), BEAT_MS);
    let released = false;
    return () => {
      if (!released) {
        released = true;
        this._holders -= 1;
        this._stopIfIdle();
      }
    };
  }

  dispose(): void {
    this._holders = 0;
    this._stopIfIdle();
    Signal.clearData(this);
  }

  private _stopIfIdle(): void {
    if (this._holders === 0 && this._timer !== null) {
      clearInterval(this._timer);
      this._timer = null;
    }
  }

  private _bound = Infinity;
  private _offset: number | null = null;
  private _holders = 0;
  private _timer: ReturnType<typeof setInterval> | null = null;
  private readonly _local: () => number;
  private readonly _ticked = new Signal<this, void>(this);
}
