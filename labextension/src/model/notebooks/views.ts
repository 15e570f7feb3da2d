/** A notebook can be open in several views (*New View for Notebook*), which share its model, its context and its session. */
import { DisposableDelegate, IDisposable } from '@lumino/disposable';

/** What there is once for all views of something: made with the first, disposed with the last. */
export class Views<K extends object> {
  /** Add a view; dispose the result when it is closed. */
  open(key: K, make: () => IDisposable): IDisposable {
    const shared = this._all.get(key) ?? { made: make(), count: 0 };
    this._all.set(key, shared);
    shared.count += 1;
    return new DisposableDelegate(() => {
      shared.count -= 1;
      if (shared.count === 0) {
        this._all.delete(key);
        shared.made.dispose();
      }
    });
  }

  private readonly _all = new Map<K, { made: IDisposable; count: number }>();
}
