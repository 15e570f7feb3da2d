/** A line in a cell's header: what was found about the cell, and at which line of code; folded away by a click. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { FoldedCells } from '../../../model/executions/foldedcells';
import type { ICodeLine } from '../../../services/protocol';
import { linkedPlace } from '../../states/codelines';

export interface INoteLineOptions {
  trans: TranslationBundle;
  folded: FoldedCells;
  goTo(place: ICodeLine): void;
  /** The word that stays when the line is folded away. */
  word: string;
  /** What the line is about, for screen readers. */
  label: string;
  /** Stands after the sentence. */
  more: HTMLElement;
}

export class NoteLine {
  constructor(private readonly _options: INoteLineOptions) {
    const { trans, word, label, more } = _options;
    this.node.className = 'jpd-NoteLine';
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', label);
    this._fold.type = this._link.type = 'button';
    this._fold.className = 'jpd-NoteLine-fold';
    this._fold.textContent = word;
    this._fold.setAttribute('aria-label', word); // without the arrow of the style sheet
    this._fold.addEventListener('click', () => this._onFold());
    this._link.className = 'jpd-NoteLine-link';
    this._link.title = trans.__('Go to this line');
    this._link.addEventListener('click', () => this._place && _options.goTo(this._place));
    this._text.className = 'jpd-NoteLine-text';
    this._text.append(this._before, this._link, this._after);
    this.node.append(this._fold, this._text, more);
  }

  readonly node = document.createElement('div');

  /** Show a sentence; `cell`: what is remembered as folded. */
  show(cell: string, message: string, place: ICodeLine | null, title = ''): void {
    this._cell = cell;
    this._place = place;
    const [before, link, after] = linkedPlace(this._options.trans, message, place);
    setText(this._before, before);
    setText(this._link, link);
    setText(this._after, after);
    this._link.hidden = link === '';
    this._text.title = title;
    this._message = title || message;
    this._draw();
  }

  private _onFold(): void {
    const { folded } = this._options;
    folded.set(this._cell, !folded.has(this._cell));
    this._draw();
  }

  private _draw(): void {
    const { folded, more, trans } = this._options;
    const isFolded = folded.has(this._cell);
    this.node.classList.toggle('jpd-mod-folded', isFolded);
    this._text.hidden = more.hidden = isFolded;
    this._fold.setAttribute('aria-expanded', String(!isFolded));
    this._fold.title = isFolded ? this._message : trans.__('Fold this away');
  }

  private readonly _after = document.createElement('span');
  private readonly _before = document.createElement('span');
  private _cell = '';
  private readonly _fold = document.createElement('button');
  private readonly _link = document.createElement('button');
  private _message = '';
  private _place: ICodeLine | null = null;
  private readonly _text = document.createElement('span');
}

function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}
