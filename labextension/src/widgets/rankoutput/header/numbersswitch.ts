/** Condenses lines that differ in numbers only, and switches back to the exact text. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Condenser } from '../../../model/numbers/condense';
import type { IShownItem } from '../items/shown';

export interface INumbersSwitchOptions {
  trans: TranslationBundle;
  /** The setting. */
  condenses(): boolean;
  /** Draw the items again. */
  redraw(): void;
}

export class NumbersSwitch {
  constructor(private _options: INumbersSwitchOptions) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-Ranks-action jpd-Ranks-exact';
    button.textContent = _options.trans.__('Exact text');
    button.title = _options.trans.__(
      'Show every line of every rank, in place of one for lines that differ in numbers only'
    );
    button.hidden = true;
    button.onclick = () => {
      this._isExact = !this._isExact;
      _options.redraw();
    };
    this.node = button;
  }

  readonly node: HTMLButtonElement;

  /** The items to show. */
  apply(items: readonly IShownItem[]): readonly IShownItem[] {
    const condensed = this._options.condenses() ? this._condenser.apply(items, this._opened) : items;
    this.node.hidden = !condensed.some(item => item.condensed);
    this.node.setAttribute('aria-pressed', String(this._isExact));
    return this._isExact ? items : condensed;
  }

  /** Show or hide the exact lines of a condensed line. */
  toggle(key: string): void {
    if (!this._opened.delete(key)) {
      this._opened.add(key);
    }
    this._options.redraw();
  }

  private readonly _condenser = new Condenser();
  private _isExact = false;
  private readonly _opened = new Set<string>();
}
