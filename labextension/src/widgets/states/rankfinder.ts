/** For many ranks: how many have which state, and a field that opens the output of any of them. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { includesRank } from '../../model/format/ranks';
import { fillStateBar, StateCounts } from './statebar';

/** Above this many ranks, only some have a tab, a toggle or a row. */
export const MANY_RANKS = 64;

export interface IRankFinderOptions {
  trans: TranslationBundle;
  onSelect(rank: number): void;
}

export class RankFinder {
  constructor(private _options: IRankFinderOptions) {
    const { trans } = _options;
    this.node = document.createElement('div');
    this.node.className = 'jpd-RankFinder';
    this.node.hidden = true;
    this._bar = document.createElement('div');
    this._input = document.createElement('input');
    this._input.type = 'text';
    this._input.inputMode = 'numeric';
    this._input.maxLength = 7;
    this._input.placeholder = trans.__('Rank');
    this._input.setAttribute('aria-label', trans.__('Show the output of rank'));
    this._input.addEventListener('keydown', this);
    this.node.append(this._bar, this._input);
  }

  readonly node: HTMLElement;

  /** Show it for these ranks (canonical), so many of them in each state; hide it if they are few. */
  update(ranks: string, counts: StateCounts): void {
    this.node.hidden = counts.reduce((sum, [, count]) => sum + count, 0) <= MANY_RANKS;
    if (!this.node.hidden) {
      this._ranks = ranks;
      this._input.title = this._options.trans.__('Ranks %1: type a number and press Enter', ranks);
      fillStateBar(this._bar, counts, this._options.trans);
    }
  }

  handleEvent(event: KeyboardEvent): void {
    // The notebook's shortcuts are not for this field.
    event.stopPropagation();
    const rank = Number(this._input.value.trim() || NaN);
    if (event.key === 'Enter') {
      const isThere = Number.isInteger(rank) && includesRank(this._ranks, rank);
      this._input.setAttribute('aria-invalid', String(!isThere));
      if (isThere) {
        this._options.onSelect(rank);
        this._input.select();
      }
    } else {
      this._input.removeAttribute('aria-invalid');
    }
  }

  dispose(): void {
    this._input.removeEventListener('keydown', this);
  }

  private readonly _bar: HTMLElement;
  private readonly _input: HTMLInputElement;
  private _ranks = '';
}
