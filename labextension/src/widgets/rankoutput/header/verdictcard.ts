/** The card in a cell that says why it does not end: which ranks wait for which others, and what to do. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { expandRanks, formatRanks } from '../../../model/format/ranks';
import type { IVerdict } from '../../../services/protocol';
import { rankSetLabel } from '../itemrow';

export interface IVerdictCardOptions {
  trans: TranslationBundle;
  /** Interrupt the ranks that wait. */
  interrupt(): void;
}

export class VerdictCard {
  constructor(options: IVerdictCardOptions) {
    const { trans } = options;
    this._trans = trans;
    this.node.className = 'jpd-Verdict';
    this.node.hidden = true;
    // Read aloud as soon as it is there.
    this.node.setAttribute('role', 'alert');
    this._title.className = 'jpd-Verdict-title';
    this._ranks.className = 'jpd-Verdict-ranks';
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-Verdict-interrupt';
    button.textContent = trans.__('Interrupt these ranks');
    button.title = trans.__('End the cell on the ranks that wait; all variables are kept');
    button.addEventListener('click', () => options.interrupt());
    this.node.append(this._title, this._ranks, button);
  }

  readonly node = document.createElement('div');

  update(verdict: IVerdict | null): void {
    const shape = JSON.stringify(verdict);
    if (shape === this._shape) {
      return;
    }
    this._shape = shape;
    this.node.hidden = verdict === null;
    if (verdict) {
      this.node.dataset.kind = verdict.kind;
      this._title.textContent = this._titleOf(verdict);
      this._ranks.replaceChildren(...[...verdict.waiting, ...verdict.needed].map(part => this._row(part)));
    }
  }

  private _titleOf({ kind, reason, waiting, needed }: IVerdict): string {
    const trans = this._trans;
    const label = (parts: IVerdict['waiting']): string =>
      rankSetLabel(trans, formatRanks(parts.flatMap(part => expandRanks(part.ranks))));
    const [mine, others] = [label(waiting), needed.length ? label(needed) : ''];
    const titles: Record<IVerdict['reason'], string> = {
      missing: trans.__('Cannot end: %1 called what %2 did not call and, being idle, will not', mine, others),
      dead: trans.__('Cannot end: %1 called what %2 cannot call any more', mine, others),
      order: trans.__('Cannot end: %1 wait for each other in different process groups', mine),
      mismatch: trans.__('Cannot end: %1 wait for each other in calls that do not match', mine),
      shapes: trans.__('Cannot end: the tensors of %1 differ in shape or dtype', mine),
      busy: trans.__('Waiting: %1 called what %2 has not called yet', mine, others)
    };
    return titles[kind === 'waits' ? 'busy' : reason];
  }

  private _row({ ranks, state, place, call }: IVerdict['waiting'][number]): HTMLElement {
    const row = document.createElement('li');
    const words: Record<string, string> = {
      waits: this._trans.__('waits in %1', call ?? ''),
      runs: this._trans.__('runs'),
      idle: this._trans.__('idle'),
      dead: this._trans.__('dead'),
      unknown: this._trans.__('does not answer')
    };
    const name = document.createElement('b');
    name.textContent = rankSetLabel(this._trans, ranks);
    row.append(name, ` ${words[state]}${place ? ` \u00b7 ${place}` : ''}`);
    return row;
  }

  private readonly _trans: TranslationBundle;
  private readonly _title = document.createElement('div');
  private readonly _ranks = document.createElement('ul');
  private _shape = 'null';
}
