/** The line in a running cell about why it is slow; folded away by a click. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { FoldedCells } from '../../../model/executions/foldedcells';
import type { ICodeLine, ISlowCause } from '../../../services/protocol';
import { Spoken } from '../../base/spoken';
import { inWords } from '../../../services/words';
import { linkedPlace } from '../../states/codelines';

export interface ISlowLineOptions {
  trans: TranslationBundle;
  folded: FoldedCells;
  goTo(place: ICodeLine): void;
  /** The button that shows the details. */
  details: HTMLElement;
}

export class SlowLine {
  constructor(private readonly _options: ISlowLineOptions) {
    const { trans } = _options;
    this.node.className = 'jpd-Slow';
    this.node.hidden = true;
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', trans.__('Why the cell is slow'));
    this._fold.type = this._link.type = 'button';
    this._fold.className = 'jpd-Slow-fold';
    this._fold.textContent = trans.__('Slow');
    this._fold.setAttribute('aria-label', trans.__('Slow')); // without the arrow of the style sheet
    this._fold.addEventListener('click', () => this._onFold());
    this._link.className = 'jpd-Slow-link';
    this._link.title = trans.__('Go to this line');
    this._link.addEventListener('click', () => this._place && _options.goTo(this._place));
    this._text.className = 'jpd-Slow-text';
    this._text.append(this._before, this._link, this._after);
    this.node.append(this._fold, this._text, _options.details);
  }

  readonly node = document.createElement('div');

  /** What screen readers announce; not in the line, which is hidden before. */
  get spoken(): HTMLElement {
    return this._spoken.node;
  }

  /** Show the costliest cause; none: nothing. `cell`: what is remembered as folded. */
  update(found: readonly ISlowCause[], cell: string): void {
    const { trans } = this._options;
    const causes = found.map(cause => ({ ...cause, message: inWords(trans, cause.message, cause.message_words) }));
    const [first] = causes;
    this._cell = cell;
    this.node.hidden = !first;
    // The numbers change with each look; what is announced does not.
    this._spoken.say(first ? causes.map(({ kind, ranks }) => `${kind} ${ranks}`).join() : '', first?.message ?? '');
    if (!first) {
      return;
    }
    this._place = first.place;
    const [before, link, after] = linkedPlace(trans, first.message, first.place);
    setText(this._before, before);
    setText(this._link, link);
    setText(this._after, after);
    this._link.hidden = link === '';
    this._text.title = causes.map(({ message }) => message).join('\n');
    this._draw();
  }

  private _onFold(): void {
    const { folded } = this._options;
    folded.set(this._cell, !folded.has(this._cell));
    this._draw();
  }

  private _draw(): void {
    const { folded, details, trans } = this._options;
    const isFolded = folded.has(this._cell);
    this.node.classList.toggle('jpd-mod-folded', isFolded);
    this._text.hidden = details.hidden = isFolded;
    this._fold.setAttribute('aria-expanded', String(!isFolded));
    this._fold.title = isFolded ? this._text.title : trans.__('Fold this away');
  }

  private readonly _after = document.createElement('span');
  private readonly _before = document.createElement('span');
  private _cell = '';
  private readonly _fold = document.createElement('button');
  private readonly _link = document.createElement('button');
  private _place: ICodeLine | null = null;
  private readonly _spoken = new SpokenOnce();
  private readonly _text = document.createElement('span');
}

/** Announces a text only once for each subject. */
class SpokenOnce {
  get node(): HTMLElement {
    return this._spoken.node;
  }

  say(about: string, text: string): void {
    if (about !== this._about) {
      this._about = about;
      this._spoken.say(text);
    }
  }

  private _about = '';
  private readonly _spoken = new Spoken();
}

function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}
