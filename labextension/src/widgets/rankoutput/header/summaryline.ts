/** The summary line of a rank output on the page; screen readers announce it when more than a time has changed. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Spoken } from '../../base/spoken';
import type { IShown } from '../items/shown';
import { IWaitWords, memoryHint, summarize } from './summary';

/** What the line shows besides the output. */
export interface ISummaryState {
  now: number;
  isStale: boolean;
  /** The group is the notebook's. */
  isOwnGroup: boolean;
  /** The cause for which the cell waits; for a null time, without how long. */
  waiting(now: number | null): IWaitWords | null;
  /** More for the tooltip. */
  hint: string;
}

export class SummaryLine {
  constructor(private readonly _trans: TranslationBundle) {
    this._line.className = 'jpd-Ranks-summary';
    this.nodes = [this._line, this._spoken.node];
  }

  readonly nodes: readonly HTMLElement[];

  /** The text of its tooltip, which has the line's own as its end. */
  get text(): string {
    return this._line.title;
  }

  update(shown: IShown, { now, isStale, isOwnGroup, waiting, hint }: ISummaryState): void {
    const words = (at: number | null): string =>
      summarize(this._trans, shown, at, isStale, isStale ? null : waiting(at), isOwnGroup);
    const text = words(now);
    if (this._line.textContent !== text) {
      this._line.textContent = text;
    }
    // The line is cut where there is little room.
    const title = [memoryHint(this._trans, shown), hint, text].filter(Boolean).join('\n');
    if (this._line.title !== title) {
      this._line.title = title;
    }
    this._spoken.say(words(null));
  }

  private readonly _line = document.createElement('div');
  private readonly _spoken = new Spoken();
}
