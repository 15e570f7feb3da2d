/** Where the time of one execution goes: asked for while its details are open. */
import type { DistError } from '../../../services/errors';
import type { IErrorBody, IPace } from '../../../services/protocol';
import { ChangingModel } from '../../../model/changing';

/** The server has new numbers every 2 to 6 s. */
export const PACE_MS = 2500;

export interface IPaceModelOptions {
  fetch(): Promise<IPace>;
  /** Whether it can be seen: only then is it asked for. */
  isVisible(): boolean;
}

export class PaceModel extends ChangingModel {
  constructor(private readonly _options: IPaceModelOptions) {
    super();
  }

  /** The last answer. */
  get pace(): IPace | null {
    return this._pace;
  }

  /** Why there is none, or no newer one. */
  get error(): IErrorBody | null {
    return this._error;
  }

  get isOpen(): boolean {
    return this._isOpen;
  }

  /** Whether the cell has ended, so that the numbers are final. */
  get hasEnded(): boolean {
    return this._hasEnded;
  }

  /** Take the numbers of an ended cell; null: they are asked for once. */
  end(pace: IPace | null): void {
    if (this._hasEnded && (pace === null || pace === this._pace)) {
      return;
    }
    this._hasEnded = true;
    this._pace = pace ?? this._pace;
    this._isFinal = pace !== null;
    this._error = null;
    this.emitChanged();
  }

  /** Forget the numbers: they are of another execution. */
  reset(): void {
    this._pace = this._error = null;
    this._hasEnded = this._isFinal = false;
    clearTimeout(this._timer);
    this.emitChanged();
    if (this._isOpen) {
      this.open();
    }
  }

  open(): void {
    this._isOpen = true;
    void this._poll(++this._opening);
  }

  close(): void {
    this._isOpen = false;
    clearTimeout(this._timer);
  }

  dispose(): void {
    this.close();
    super.dispose();
  }

  private async _poll(opening: number): Promise<void> {
    if (!this._isFinal && this._options.isVisible()) {
      await this._ask(opening);
    }
    if (this._isOpen && opening === this._opening && !this._isFinal) {
      this._timer = setTimeout(() => void this._poll(opening), PACE_MS);
    }
  }

  private async _ask(opening: number): Promise<void> {
    const hadEnded = this._hasEnded;
    let pace: IPace | null = null;
    let error: IErrorBody | null = null;
    try {
      pace = await this._options.fetch();
    } catch (reason) {
      error = reason as DistError;
    }
    // Meanwhile the cell may have ended with its numbers, or another one runs.
    if (opening === this._opening && !this._isFinal && !this.isDisposed) {
      this._pace = pace ?? this._pace;
      this._error = error;
      this._isFinal = hadEnded;
      this.emitChanged();
    }
  }

  private _error: IErrorBody | null = null;
  private _hasEnded = false;
  private _isFinal = false;
  private _isOpen = false;
  private _opening = 0;
  private _pace: IPace | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
