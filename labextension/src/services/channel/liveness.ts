/**
 * Notices a connection that is dead and was not closed: after sleep, after a change of networks, or behind a proxy that
 * keeps the page's side open, or accepts it and never answers. The browser reports none of these.
 */

/** How long opening a connection may take at first; each time that is not enough doubles it. */
export const OPEN_MS = 20000;
const MAX_OPEN_MS = 80000;

/** The server answers most messages at once; if nothing comes for this time, it is asked whether it is there. */
export const ANSWER_MS = 10000;
/** A page that sends nothing asks, too: a cable that is pulled elsewhere is noticed within half a minute. */
export const SILENT_MS = 15000;
/** How long that answer may take at first. A large message on a slow line holds it up: each loss doubles the time. */
export const PATIENCE_MS = 10000;
const MAX_PATIENCE_MS = 160000;
/** The same after a change of the network. */
export const DOUBT_MS = 4000;
/** When time is up, what waits in the browser is read first: timers of hidden, frozen and sleeping pages are late. */
export const LATE_MS = 1000;

export interface ILivenessOptions {
  /** Ask for something that is answered at once, whatever agents do. */
  ask(): void;
  /** The connection is dead. */
  lost(): void;
}

export class Liveness {
  constructor(private readonly _options: ILivenessOptions) {}

  /** How long the last opening was not answered, in seconds; null if it was answered, also by a refusal. */
  get unopenedSeconds(): number | null {
    return this._unopenedMs === null ? null : this._unopenedMs / 1000;
  }

  /** A connection is being opened. */
  opening(): void {
    this._state = 'opening';
    this._wait(this._openMs, () => this._wait(LATE_MS, () => this._loseOpening()));
  }

  /** The connection was opened. */
  start(): void {
    this._openMs = OPEN_MS;
    this._unopenedMs = null;
    this._quiet();
  }

  /** A message was sent. */
  sent(): void {
    if (this._state === 'quiet') {
      this._state = 'waiting';
      this._wait(ANSWER_MS, () => this._ask());
    }
  }

  /** A message was received. */
  heard(): void {
    if (this._state === 'asking') {
      this._patience = PATIENCE_MS;
    }
    if (this._state !== 'stopped') {
      this._quiet();
    }
  }

  /** The browser has lost its network, or has one again: it does not know whether that leads to the server. */
  doubt(): void {
    if (this._state === 'quiet' || this._state === 'waiting') {
      this._ask(DOUBT_MS);
    }
  }

  /** The connection was closed, or refused. */
  stop(): void {
    if (this._state === 'opening') {
      this._unopenedMs = null;
    }
    this._state = 'stopped';
    clearTimeout(this._timer);
  }

  private _quiet(): void {
    this._state = 'quiet';
    this._wait(SILENT_MS, () => this._ask());
  }

  private _ask(patience = this._patience): void {
    this._state = 'asking';
    this._options.ask();
    this._wait(patience, () => this._wait(LATE_MS, () => this._lose()));
  }

  private _lose(): void {
    this._patience = Math.min(2 * this._patience, MAX_PATIENCE_MS);
    this.stop();
    this._options.lost();
  }

  private _loseOpening(): void {
    this.stop();
    this._unopenedMs = this._openMs;
    this._openMs = Math.min(2 * this._openMs, MAX_OPEN_MS);
    this._options.lost();
  }

  private _wait(ms: number, then: () => void): void {
    clearTimeout(this._timer);
    this._timer = setTimeout(then, ms);
  }

  private _openMs = OPEN_MS;
  private _patience = PATIENCE_MS;
  private _state: 'stopped' | 'opening' | 'quiet' | 'waiting' | 'asking' = 'stopped';
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _unopenedMs: number | null = null;
}
