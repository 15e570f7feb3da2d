/** Replaces the dead ranks of a group, from the cell that misses them. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { formatRanks } from '../../../model/format/ranks';
import type { IDistGroups } from '../../../tokens';
import { rankSetLabel } from '../items/itemrow';

export interface IReplaceButtonOptions {
  trans: TranslationBundle;
  groups: IDistGroups;
  replace(group: string): void;
}

/** Shown as long as the group has dead ranks. It follows the groups only while it has a group: most cells need none. */
export class ReplaceButton implements IDisposable {
  constructor(private readonly _options: IReplaceButtonOptions) {
    this.node.type = 'button';
    this.node.className = 'jpd-Ranks-action jpd-Ranks-replace';
    this.node.title = _options.trans.__('Start new processes for dead ranks; the other ranks keep their variables');
    // In a notebook's command mode Enter edits the cell; here it presses the button.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this.node.addEventListener('click', () => this._group && _options.replace(this._group));
    this.node.hidden = true;
  }

  readonly node = document.createElement('button');

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The group whose dead ranks a cell misses; null: it misses none. */
  show(group: string | null): void {
    if (group === this._group) {
      return;
    }
    const { changed } = this._options.groups;
    changed.disconnect(this._update, this);
    this._group = group;
    if (group) {
      changed.connect(this._update, this);
    }
    this._update();
  }

  dispose(): void {
    this.show(null);
    this._isDisposed = true;
  }

  private _update(): void {
    const { groups, trans } = this._options;
    const group = this._group ? groups.find(this._group) : null;
    const dead = group?.state === 'dead' ? [] : (group?.ranks ?? []).filter(rank => rank.state === 'dead');
    this.node.hidden = dead.length === 0;
    this.node.textContent = trans.__(
      'Replace %1\u2026',
      rankSetLabel(trans, formatRanks(dead.map(({ rank }) => rank)))
    );
  }

  private _group: string | null = null;
  private _isDisposed = false;
}
