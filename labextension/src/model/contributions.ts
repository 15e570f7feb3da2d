/** What other extensions add to a place of this one. */
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import type { IContribution, IContributions } from '../tokens';
import { ChangingModel } from './changing';

const DEFAULT_RANK = 100;

/** Do what another extension adds, or what is added to JupyterLab: an error there must not take away what is around it. `what` names it in the console. */
export function guarded<R>(what: string, act: () => R, otherwise: R): R {
  try {
    return act();
  } catch (reason) {
    console.error(`jupyter_dist: ${what} failed`, reason);
    return otherwise;
  }
}

export class Contributions<T extends IContribution> extends ChangingModel implements IContributions<T> {
  get items(): readonly T[] {
    return this._items;
  }

  add(item: T): IDisposable {
    if (this._items.some(({ id }) => id === item.id)) {
      throw new Error(`jupyter_dist: '${item.id}' was added already.`);
    }
    const place = ({ rank = DEFAULT_RANK }: T): number => rank;
    this._items = [...this._items, item].sort((a, b) => place(a) - place(b));
    this.emitChanged();
    return new DisposableDelegate(() => {
      this._items = this._items.filter(each => each !== item);
      this.emitChanged();
    });
  }

  private _items: readonly T[] = [];
}
