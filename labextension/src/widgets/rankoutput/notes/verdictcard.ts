/**
 * The card in a cell that explains why it does not end: which ranks wait for which others, and what to do. When the ranks
 * have been freed, one line of it stays until the cell runs again.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatSeconds } from '../../../model/format/quantities';
import { expandRanks, formatRanks, isRankSet } from '../../../model/format/ranks';
import { isList, isObject, isText, isTime } from '../../../model/outputs/parsebundle';
import type { IRankStack, IVerdict, IVerdictPart } from '../../../services/protocol';
import { rankSetLabel } from '../items/itemrow';
import { StackList } from './stacklist';
import { placeWords, stateOfStack } from './stackstate';

/** A longer list of ranks is counted in the title. */
const MAX_NAMED = 16;

export interface IVerdictCardOptions {
  trans: TranslationBundle;
  /** Whether its buttons can do anything. */
  hasServer: boolean;
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
}

export class VerdictCard {
  constructor(options: IVerdictCardOptions) {
    const { trans } = options;
    this._trans = trans;
    this.node.className = 'jpd-Verdict';
    this.node.hidden = true;
    // Read aloud as soon as it is there.
    const text = document.createElement('div');
    text.setAttribute('role', 'alert');
    this._title.className = 'jpd-Verdict-title';
    this._ranks.className = 'jpd-Verdict-ranks';
    text.append(this._title, this._ranks);
    this._stacks = new StackList(trans, options.stacks);
    const interrupt = button('interrupt', trans.__('Interrupt these ranks'), () => options.interrupt());
    interrupt.title = trans.__('End the cell on the ranks that wait; all variables are kept');
    this._join = button('join', '', () => void this._extend(options));
    const buttons = document.createElement('div');
    buttons.className = 'jpd-Verdict-buttons';
    buttons.append(this._join, interrupt, this._stacks.button);
    this.node.append(text, ...(options.hasServer ? [buttons, this._stacks.node] : []));
    this.past.className = 'jpd-Verdict-past';
    this.past.hidden = true;
  }

  readonly node = document.createElement('div');
  /** The line that stays. */
  readonly past = document.createElement('div');

  update({ execution, verdict, isStale, until }: IShownVerdict): void {
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
      this._stacks.close();
      return;
    }
    this.node.dataset.kind = verdict.kind;
    this._title.textContent = this._titleOf(verdict);
    this._ranks.replaceChildren(...[...verdict.waiting, ...verdict.needed].map(part => this._row(part)));
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
    this._stacks.close();
  }

  private async _extend({ extend }: IVerdictCardOptions): Promise<void> {
    this._join.disabled = true;
    await extend(this._joining);
    this._join.disabled = false;
  }

  private _titleOf(verdict: IVerdict): string {
    return verdictTitle(this._trans, verdict);
  }

  private _pastOf({ waiting, needed }: IVerdict, seconds: string): string {
    const mine = labelOf(this._trans, waiting);
    return needed.length > 0
      ? this._trans.__('For %1, %2 waited for %3.', seconds, mine, labelOf(this._trans, needed))
      : this._trans.__('For %1, %2 waited for each other.', seconds, mine);
  }

  private _row(part: IVerdict['waiting'][number]): HTMLElement {
    const row = document.createElement('li');
    const name = document.createElement('b');
    name.textContent = rankSetLabel(this._trans, part.ranks);
    row.append(name, ` ${doing(this._trans, part)}`);
    return row;
  }

  private _execution = '';
  private readonly _join: HTMLButtonElement;
  private _joining = '';
  /** The last verdict that the cell cannot end. */
  private _last: IVerdict | null = null;
  private readonly _stacks: StackList;
  private readonly _trans: TranslationBundle;
  private readonly _title = document.createElement('div');
  private readonly _ranks = document.createElement('ul');
  private _shape = 'null';
  /** The verdict that the line is about. */
  private _told: IVerdict | null = null;
}

/** Which ranks wait for which others, and whether that can end. */
export function verdictTitle(trans: TranslationBundle, { reason, waiting, needed }: IVerdict): string {
  const [mine, others] = [labelOf(trans, waiting), needed.length ? labelOf(trans, needed) : ''];
  const titles: Record<IVerdict['reason'], string> = {
    missing: trans.__('Cannot end: %1 called what %2 did not call and, being idle, will not', mine, others),
    dead: trans.__('Cannot end: %1 called what %2 cannot call any more', mine, others),
    order: trans.__('Cannot end: %1 wait for each other in different process groups', mine),
    mismatch: trans.__('Cannot end: %1 wait for each other in calls that do not match', mine),
    shapes: trans.__('Cannot end: the tensors of %1 differ in shape or dtype', mine),
    busy: trans.__('Waiting: %1 called what %2 has not called yet', mine, others),
    still: trans.__('Waiting: nothing has moved on %1', mine),
    cut: trans.__('Waiting: nothing has moved on %1, and their machines do not reach each other', mine)
  };
  return titles[reason];
}

/** The same and what each rank does, in one text. */
export function verdictText(trans: TranslationBundle, verdict: IVerdict): string {
  const parts = [...verdict.waiting, ...verdict.needed].map(
    part => `${rankSetLabel(trans, part.ranks)} ${doing(trans, part)}`
  );
  return `${verdictTitle(trans, verdict)}. ${parts.join('; ')}`;
}

/** "waits in barrier, number 1 \u00b7 line 2 of cell [4]" */
function doing(trans: TranslationBundle, part: IVerdict['waiting'][number]): string {
  return [stateOfStack(trans, part), placeWords(trans, part)].filter(Boolean).join(' \u00b7 ');
}

function labelOf(trans: TranslationBundle, parts: IVerdict['waiting']): string {
  const ranks = parts.flatMap(part => expandRanks(part.ranks));
  const named = formatRanks(ranks);
  // The lines below name all of them.
  return named.length > MAX_NAMED ? trans.__('%1 ranks', ranks.length) : rankSetLabel(trans, named);
}

function button(name: string, label: string, act: () => void): HTMLButtonElement {
  const node = document.createElement('button');
  node.type = 'button';
  node.className = `jpd-Ranks-action jpd-Verdict-${name}`;
  node.textContent = label;
  node.addEventListener('click', act);
  return node;
}

const REASONS: readonly unknown[] = [
  'missing',
  'dead',
  'order',
  'mismatch',
  'shapes',
  'busy',
  'still',
  'cut'
] satisfies IVerdict['reason'][];
const RANK_STATES: readonly unknown[] = ['waits', 'runs', 'idle', 'dead', 'unknown'] satisfies IVerdictPart['state'][];

/** The verdict in a bundle of a kernel, in English and without what needs a server; null if it has none that is valid. */
export function readVerdict(bundle: unknown): IVerdict | null {
  const verdict = isObject(bundle) ? bundle.verdict : null;
  if (!isVerdict(verdict)) {
    return null;
  }
  const { kind, reason, message, since, paths } = verdict;
  const read = ({ ranks, state, place, call }: IVerdictPart): IVerdictPart => ({
    ranks,
    state,
    place: place ?? null,
    call: call ?? null
  });
  const parts = { waiting: verdict.waiting.map(read), needed: verdict.needed.map(read) };
  return { kind, reason, message, since, ...parts, ...(paths ? { paths } : {}) };
}

function isVerdict(value: unknown): value is IVerdict {
  return (
    isObject(value) &&
    (value.kind === 'cannot_end' || value.kind === 'waits') &&
    REASONS.includes(value.reason) &&
    isText(value.message) &&
    typeof value.since === 'number' &&
    isTime(value.since) &&
    isList(value.waiting, isPart) &&
    isList(value.needed, isPart) &&
    isText(value.paths ?? '')
  );
}

function isPart(value: unknown): value is IVerdictPart {
  const isRanks = isObject(value) && isRankSet(value.ranks) && RANK_STATES.includes(value.state);
  return isRanks && isText(value.place ?? '') && isText(value.call ?? '');
}
