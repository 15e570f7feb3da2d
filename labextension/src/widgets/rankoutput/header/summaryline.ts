/** The summary line of a rank output on the page; screen readers announce it when more than a time has changed. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Spoken } from '../../base/spoken';
import type { IShown } from '../items/shown';
import { IWaitWords, memoryHint, summarize } from './summary';

export class SummaryLine {
  constructor(private readonly _trans: TranslationBundle) {
    this._line.className = 'jpd-Ranks-summary';
    this.nodes = [this._line, this._spoken.node];
  }

  readonly nodes: readonly HTMLElement[];

  /** `waiting` returns the cause for which the cell waits; for a null time, without how long. `hint`: more for the tooltip. */
  update(
    shown: IShown,
    now: number,
    isStale: boolean,
    waiting: (now: number | null) => IWaitWords | null,
    hint: string
  ): void {
    const words = (at: number | null): string =>
      summarize(this._trans, shown, at, isStale, isStale ? null : waiting(at));
    const text = words(now);
    if (this._line.textContent !== text) {
      this._line.textContent = text;
    }
    this._line.title = [memoryHint(this._trans, shown), hint].filter(Boolean).join('\n');
    this._spoken.say(words(null));
  }

  private readonly _line = document.createElement('div');
  private readonly _spoken = new Spoken();
}
