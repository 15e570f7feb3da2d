/** Shows in a cell what its ranks wait for; the sidebar shows it, too, but may be closed. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { expandRanks, formatRanks } from '../../../model/format/ranks';
import type { IGroup } from '../../../services/protocol';
import { translation } from '../../../services/translation';
import { cannotBeInterrupted, messageOf } from '../../states/statewords';
import { rankSetLabel } from '../items/itemrow';

/** A message about ranks that wait; ranks that ignore interrupts can be killed. */
export interface IRankNote {
  readonly ranks: string;
  readonly message: string;
  readonly isStuck: boolean;
}

/** The messages of the ranks that run this execution, equal messages once. */
export function notesOf(group: IGroup | null, execution: string): IRankNote[] {
  const notes = new Map<string, { message: string; isStuck: boolean; ranks: number[] }>();
  for (const rank of group?.ranks ?? []) {
    const { message } = rank;
    if (rank.execution_id !== execution || !message) {
      continue;
    }
    const isStuck = cannotBeInterrupted(rank);
    // Ranks that wait for the same are seconds apart.
    const key = `${isStuck} ${message.replace(/\d+ s\b/g, '')}`;
    const known = notes.get(key) ?? { message: messageOf(translation(), rank), isStuck, ranks: [] };
    notes.set(key, { ...known, ranks: [...known.ranks, rank.rank] });
  }
  return [...notes.values()].map(({ ranks, ...note }) => ({ ...note, ranks: formatRanks(ranks) }));
}

export interface IRankNotesOptions {
  trans: TranslationBundle;
  /** Without a rank: asks which. */
  kill(rank: number | null): void;
}

/** For more ranks than this there is one button, which asks for the rank. */
const MAX_BUTTONS = 4;

/** The lines below a cell's header. A button keeps its focus while the seconds beside it count. */
export class RankNotes {
  constructor(options: IRankNotesOptions) {
    this._options = options;
    this.node = document.createElement('div');
    this.node.className = 'jpd-RankNotes';
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', options.trans.__('What ranks wait for'));
    this.node.hidden = true;
  }

  readonly node: HTMLElement;

  update(notes: readonly IRankNote[]): void {
    const shape = notes.map(({ ranks, isStuck }) => `${ranks} ${isStuck}`).join(';');
    if (shape !== this._shape) {
      this._shape = shape;
      this.node.replaceChildren(...notes.map(note => this._line(note)));
      this.node.hidden = notes.length === 0;
    }
    notes.forEach((note, i) => this._say(this.node.children[i].firstElementChild!, note));
  }

  private _say(text: Element, { ranks, message }: IRankNote): void {
    const words = `${rankSetLabel(this._options.trans, ranks)}: ${message}`;
    if (text.textContent !== words) {
      text.textContent = words;
    }
  }

  private _line({ ranks, isStuck }: IRankNote): HTMLElement {
    const line = document.createElement('div');
    line.className = 'jpd-RankNotes-line';
    line.append(document.createElement('span'));
    if (isStuck) {
      const each: (number | null)[] = expandRanks(ranks);
      line.append(...(each.length > MAX_BUTTONS ? [null] : each).map(rank => this._killButton(rank)));
    }
    return line;
  }

  private _killButton(rank: number | null): HTMLElement {
    const { trans, kill } = this._options;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-Ranks-action jpd-RankNotes-kill';
    button.textContent = rank === null ? trans.__('Kill a rank\u2026') : trans.__('Kill rank %1\u2026', rank);
    button.title = trans.__('Kill a rank that cannot be interrupted; the other ranks keep their variables');
    button.addEventListener('click', () => kill(rank));
    return button;
  }

  private readonly _options: IRankNotesOptions;
  private _shape = '';
}
