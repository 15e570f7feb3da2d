/** One line that stands for several ranks' lines, which differ in numbers only. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ICondensed, IProgress } from '../../../model/numbers/condense';
import type { ISpread, IValue } from '../../../model/numbers/spread';
import { PLAIN } from './ansi';
import { write } from './streamtext';

/** With more numbers that differ, the line has no room for the least and the greatest of each. */
const MAX_RANGES = 2;
/** Values that a title lists. */
const MAX_LISTED = 16;

export class NumbersLine {
  constructor(
    private _trans: TranslationBundle,
    condensed: ICondensed,
    toggleExact: () => void
  ) {
    this.node = document.createElement('pre');
    this.node.className = 'jpd-Numbers';
    const { parts, progress } = condensed;
    const withRanges = parts.filter(part => typeof part !== 'string').length <= MAX_RANGES;
    let style = PLAIN;
    for (const part of parts) {
      if (typeof part === 'string') {
        style = write(this.node, part, style);
      } else {
        this.node.append(this._spread(part, withRanges));
      }
    }
    if (progress) {
      this.node.append(' ', this._progress(progress));
    }
    this.node.append(this._button(condensed.numLines, toggleExact));
  }

  readonly node: HTMLElement;

  private _spread(spread: ISpread, withRange: boolean): HTMLElement {
    const { few, mean, deviation, least, most, notFinite } = spread;
    const node = span('jpd-Numbers-spread', few ? '' : (mean ?? ''));
    node.title = this._listed(spread.values);
    if (few) {
      few.forEach(({ text, isOdd }, i) =>
        node.append(i > 0 ? ' \u00b7 ' : '', isOdd ? span('jpd-Numbers-odd', text) : text)
      );
      return node;
    }
    const details: (Node | string)[] = [];
    if (deviation) {
      details.push(`\u00b1${deviation}`);
    }
    if (least && most && (withRange || !mean || least.isOdd || most.isOdd)) {
      details.push(this._range(least, most));
    }
    details.push(...notFinite.map(value => this._end(value)));
    details.forEach((detail, i) => node.append(mean || i > 0 ? ' ' : '', detail));
    return node;
  }

  private _range(least: IValue, most: IValue): Node {
    const node = span('jpd-Numbers-range', '\u27e8');
    if (least.text === most.text) {
      node.append(least.text);
    } else {
      node.append(this._end(least), ' \u2026 ', this._end(most));
    }
    node.append('\u27e9');
    return node;
  }

  /** "0.0902 (0)" */
  private _end({ text, rank, isOdd }: IValue): Node {
    const node = span(isOdd ? 'jpd-Numbers-odd' : 'jpd-Numbers-end', text);
    // A number that is its rank, as in a greeting, is named once.
    return text === String(rank) ? node : (node.append(` (${rank})`), node);
  }

  private _progress({ slowest, fastest }: IProgress): Node {
    const words = this._trans.__(
      '\u27e8slowest: rank %1, %2 \u2026 fastest: rank %3, %4\u27e9',
      slowest.rank,
      slowest.text,
      fastest.rank,
      fastest.text
    );
    return span('jpd-Numbers-range', words);
  }

  private _listed(values: readonly IValue[]): string {
    const lines = values.slice(0, MAX_LISTED).map(({ rank, text }) => this._trans.__('rank %1: %2', rank, text));
    return [...lines, ...(values.length > MAX_LISTED ? ['\u2026'] : [])].join('\n');
  }

  /** For the pointer; the button above the output has the keyboard, too. */
  private _button(numLines: number, toggle: () => void): HTMLElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.tabIndex = -1;
    button.className = 'jpd-Numbers-exact';
    button.textContent = this._trans._n('%1 line', '%1 lines', numLines);
    button.title = this._trans.__('Show or hide the exact lines');
    button.onclick = toggle;
    return button;
  }
}

function span(className: string, text: string): HTMLElement {
  const node = document.createElement('span');
  node.className = className;
  node.textContent = text;
  return node;
}
