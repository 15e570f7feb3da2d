/** The base of models with a `changed` signal. */
import type { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

/** Emits `changed` until it is disposed, which also disconnects its slots. */
export class ChangingModel implements IDisposable {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  protected emitChanged(): void {
    this._changed.emit();
  }

  private _changed = new Signal<this, void>(this);
  private _isDisposed = false;
}
