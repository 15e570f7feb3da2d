/** Loads a rank's log into its window: the end first, then new records, and older ones on demand. */
import type { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import type { IErrorBody, ILogPage, TopicMessage } from '../../../services/protocol';
import type { IService } from '../../../services/service';
import type { ITopicSubscription } from '../../../services/channel/topics';
import type { LogModel } from './log';
import type { IGapBlock } from './logblocks';

/** The size of a page, in bytes of records. */
const PAGE_BYTES = 262144;

type LogService = Pick<IService, 'logs' | 'subscribe'>;

export class LogFeed implements IDisposable {
  constructor(service: LogService, group: string, rank: number, log: LogModel) {
    this._service = service;
    this._group = group;
    this._rank = rank;
    this._log = log;
  }

  /** Emitted when `isLoading` or `error` changes. */
  get stateChanged(): ISignal<this, void> {
    return this._stateChanged;
  }

  get isLoading(): boolean {
    return this._isLoading;
  }

  /** Why the log could not be read, or null. */
  get error(): string | null {
    return this._pageError ?? this._liveError;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Load the end once, and follow from there. */
  async start(): Promise<void> {
    this._isWanted = true;
    if (!this._isLoaded) {
      await this.toEnd();
    } else {
      this._follow();
    }
  }

  /** Stop following; `start` continues from here. */
  stop(): void {
    this._isWanted = false;
    this._unfollow();
  }

  /** Show the end of the log. */
  async toEnd(): Promise<void> {
    if (this._isLoading) {
      return;
    }
    // The log is followed from the end of the page: a record that came before the page would not be sent again.
    this._unfollow();
    this._isTurning = true;
    await this._page({ tail_bytes: PAGE_BYTES }, page => {
      this._log.load(page);
      this._isLoaded = true;
    });
    this._isTurning = false;
    if (this._isLoaded && this._isWanted) {
      this._follow();
    }
  }

  /** Load the page above the window. */
  async older(): Promise<void> {
    if (this._log.hasOlder) {
      await this._page({ before: this._log.first }, page => this._log.prepend(page));
    }
  }

  /** Load the records that were not sent live. */
  async fill(gap: IGapBlock): Promise<void> {
    await this._page({ before: gap.seq }, page => this._log.fill(gap, page));
  }

  dispose(): void {
    this._isDisposed = true;
    this.stop();
    Signal.clearData(this);
  }

  private async _page(which: { tail_bytes?: number; before?: number }, take: (page: ILogPage) => void): Promise<void> {
    if (this._isLoading || this._isDisposed) {
      return;
    }
    this._setState(true, this._pageError);
    try {
      const page = await this._service.logs(this._group, this._rank, which);
      if (!this._isDisposed) {
        take(page);
        this._setState(false, null);
      }
    } catch (reason) {
      this._setState(false, reason instanceof Error ? reason.message : String(reason));
    }
  }

  private _follow(): void {
    if (!this._isTurning) {
      this._subscription ??= this._service.subscribe(
        { topic: 'log', group: this._group, rank: this._rank },
        {
          since: () => this._log.seq,
          receive: message => this._receive(message),
          asked: () => this._setLiveError(null)
        }
      );
    }
  }

  private _unfollow(): void {
    this._subscription?.dispose();
    this._subscription = null;
    this._setLiveError(null);
  }

  private _receive(message: TopicMessage): void {
    if (message.type === 'log') {
      this._log.append(message.records, message.seq, message.skipped);
      this._setLiveError(null);
    } else if (message.type === 'error') {
      this._setLiveError(message.error);
    }
  }

  /** Show why no records come, until they do or the server is asked again. */
  private _setLiveError(error: IErrorBody | null): void {
    if (error !== null || this._liveError !== null) {
      this._liveError = error?.message ?? null;
      this._stateChanged.emit();
    }
  }

  private _setState(isLoading: boolean, pageError: string | null): void {
    this._isLoading = isLoading;
    this._pageError = pageError;
    this._stateChanged.emit();
  }

  private readonly _service: LogService;
  private readonly _group: string;
  private readonly _rank: number;
  private readonly _log: LogModel;
  private readonly _stateChanged = new Signal<this, void>(this);
  private _subscription: ITopicSubscription | null = null;
  private _isLoading = false;
  private _isLoaded = false;
  /** The end is on its way. */
  private _isTurning = false;
  private _isWanted = false;
  private _isDisposed = false;
  private _liveError: string | null = null;
  private _pageError: string | null = null;
}
