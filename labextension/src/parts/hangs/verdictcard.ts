/**
 * The card in a cell that explains why it does not end: which ranks wait for which others, and what to do. When the ranks
 * have been freed, one line of it stays until the cell runs again.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatSeconds } from '../../model/format/quantities';
import type { IRankStack, IVerdict, IVerdictPart } from '../../services/protocol';
import { rankSetLabel } from '../../widgets/rankoutput/items/itemrow';
import { StackList } from './stacks/stacklist';
import { doing, labelOf, verdictTitle } from './verdictwords';

/** What its buttons do. */
export interface IVerdictButtons {
  /** Interrupt the ranks that wait. */
  interrupt(): void;
  /** Run the cell, as it was submitted, on more ranks; resolves when that was tried. */
  extend(ranks: string): Promise<void>;
  /** Where all ranks are now. */
  stacks(): Promise<IRankStack[]>;
}

export interface IShownVerdict {
  /** The execution that the cell shows. */
  readonly execution: string;
  /** Null: it has ended, or its ranks do not wait. */
  readonly verdict: IVerdict | null;
  /** Whether the connection is lost, so that nothing is known of now. */
  readonly isStale: boolean;
  /** When it ended; until then, the server's time. */
  readonly until: number;
  /** Whether its buttons can do anything. */
  readonly canAct: boolean;
}

export class VerdictCard {
  /** `acts`: null where buttons cannot do anything. */
  constructor(
    private readonly _trans: TranslationBundle,
    acts: IVerdictButtons | null
  ) {
    this.node.className = 'jpd-Verdict';
    this.node.hidden = true;
    // Read aloud as soon as it is there.
    const text = document.createElement('div');
    text.setAttribute('role', 'alert');
    this._title.className = 'jpd-Verdict-title';
    this._ranks.className = 'jpd-Verdict-ranks';
    text.append(this._title, this._ranks);
    this.node.append(text, ...(acts ? this._buttons(acts) : []));
    this.past.className = 'jpd-Verdict-past';
    this.past.hidden = true;
  }

  readonly node = document.createElement('div');
  /** The line that stays. */
  readonly past = document.createElement('div');

  update({ execution, verdict, isStale, until, canAct }: IShownVerdict): void {
    this._row.hidden = !canAct;
    this._show(isStale ? null : verdict);
    if (execution !== this._execution) {
      this._execution = execution;
      this._last = null;
    }
    if (verdict?.kind === 'cannot_end') {
      this._last = verdict;
    }
    const last = verdict === null && !isStale ? this._last : null;
    this.past.hidden = last === null;
    if (last && last !== this._told) {
      this.past.textContent = this._pastOf(last, formatSeconds(until - last.since));
    }
    this._told = last;
  }

  private _show(verdict: IVerdict | null): void {
    const shape = JSON.stringify(verdict);
    if (shape === this._shape) {
      return;
    }
    this._shape = shape;
    this.node.hidden = verdict === null;
    if (!verdict) {
      this._stacks?.close();
      return;
    }
    this.node.dataset.kind = verdict.kind;
    this._title.textContent = verdictTitle(this._trans, verdict);
    this._ranks.replaceChildren(...[...verdict.waiting, ...verdict.needed].map(part => this._lineOf(part)));
    if (verdict.paths) {
      const row = document.createElement('li');
      row.textContent = verdict.paths;
      this._ranks.append(row);
    }
    this._joining = verdict.could_join ?? '';
    this._join.hidden = this._joining === '';
    this._join.textContent = this._trans.__('Run on %1, too', rankSetLabel(this._trans, this._joining));
    this._join.title = this._trans.__(
      'Run the code that waits, as it was when it was started, on the ranks that it waits for'
    );
  }

  dispose(): void {
    this._stacks?.close();
  }

  private _buttons(acts: IVerdictButtons): HTMLElement[] {
    const { _trans: trans } = this;
    this._stacks = new StackList(trans, acts.stacks);
    const interrupt = button('interrupt', trans.__('Interrupt these ranks'), () => acts.interrupt());
    interrupt.title = trans.__('End the cell on the ranks that wait; all variables are kept');
    this._join.addEventListener('click', () => void this._extend(acts));
    this._row.className = 'jpd-Verdict-buttons';
    this._row.append(this._join, interrupt, this._stacks.button);
    return [this._row, this._stacks.node];
  }

  private async _extend({ extend }: IVerdictButtons): Promise<void> {
    this._join.disabled = true;
    await extend(this._joining);
    this._join.disabled = false;
  }

  private _pastOf({ waiting, needed }: IVerdict, seconds: string): string {
    const mine = labelOf(this._trans, waiting);
    return needed.length > 0
      ? this._trans.__('For %1, %2 waited for %3.', seconds, mine, labelOf(this._trans, needed))
      : this._trans.__('For %1, %2 waited for each other.', seconds, mine);
  }

  private _lineOf(part: IVerdictPart): HTMLElement {
    const row = document.createElement('li');
    const name = document.createElement('b');
    name.textContent = rankSetLabel(this._trans, part.ranks);
    row.append(name, ` ${doing(this._trans, part)}`);
    return row;
  }

  private _execution = '';
  private readonly _join = button('join', '');
  private _joining = '';
  /** The last verdict that the cell cannot end. */
  private _last: IVerdict | null = null;
  private _stacks: StackList | null = null;
  private readonly _title = document.createElement('div');
  private readonly _ranks = document.createElement('ul');
  /** Of the buttons. */
  private readonly _row = document.createElement('div');
  private _shape = 'null';
  /** The verdict that the line is about. */
  private _told: IVerdict | null = null;
}

function button(name: string, label: string, act?: () => void): HTMLButtonElement {
  const node = document.createElement('button');
  node.type = 'button';
  node.className = `jpd-Ranks-action jpd-Verdict-${name}`;
  node.textContent = label;
  if (act) {
    node.addEventListener('click', act);
  }
  return node;
}
