/**
 * What a terminal would show of a stream: applies carriage returns, backspaces and "erase to the end of the line". The log
 * keeps the exact bytes, in which a progress bar is thousands of `\r`; the panel shows the last state.
 * The Python counterpart is jupyter_dist/server/folding/feeding/lines.py; both run tests/vectors/terminal.json.
 */

import { afterCharacters, firstCharacters, numCharacters } from '../../../model/format/characters';

/** Complete lines, and an open last line that more text may change: show `settle(open)`. */
export interface ITerminalText {
  readonly lines: string[];
  readonly open: string;
}

/* eslint-disable no-control-regex */
const CONTROL = /[\r\x08]|\x1b\[[0-2]?K/;
const CONTROLS = /([\r\x08]|\x1b\[[0-2]?K)/;
const ESCAPE = '\x1b';
const SGR = /\x1b\[([\d;]*)m/g;
/* eslint-enable no-control-regex */

/** Append `text` to an open line; returns the completed lines and the new open line. */
export function writeText(open: string, text: string): ITerminalText {
  const parts = (open + text).split('\n');
  const last = parts.pop() ?? '';
  return { lines: parts.map(settle), open: compact(last) };
}

/** Shorten an open line to its visible text and the text written over it so far, to keep the column. */
function compact(line: string): string {
  const cut = line.lastIndexOf('\r');
  return cut < 0 ? line : settle(line.slice(0, cut)) + line.slice(cut);
}

/** Apply the control characters of one line. */
export function settle(line: string): string {
  if (!CONTROL.test(line)) {
    return line;
  }
  const shown = new Line();
  for (const part of line.split(CONTROLS)) {
    shown.take(part);
  }
  return shown.text;
}

class Line {
  text = '';

  take(part: string): void {
    if (part === '\r') {
      this._column = this.text === '' ? null : 0;
      // Escape sequences take no column: a line that has some cannot be overlaid, only replaced.
      this._replaces = this.text.includes(ESCAPE);
    } else if (part === '\b') {
      this._column = Math.max(0, (this._column ?? numCharacters(this.text)) - 1);
    } else if (CONTROL.test(part)) {
      this._erase(part);
    } else if (part !== '') {
      this._write(part);
    }
  }

  private _erase(sequence: string): void {
    if (sequence.includes('2')) {
      this.text = '';
      this._column = null;
    } else if (!sequence.includes('1') && this._column !== null) {
      this.text = firstCharacters(this.text, this._column);
      this._column = null;
    }
    this._replaces = false;
  }

  private _write(text: string): void {
    if (this._column === null) {
      this.text += text;
      return;
    }
    const end = this._column + numCharacters(text);
    const rest = this._replaces || text.includes(ESCAPE) ? '' : afterCharacters(this.text, end);
    this.text = firstCharacters(this.text, this._column) + text + rest;
    this._column = rest ? end : null;
    this._replaces = false;
  }

  /** Where the next character goes; null: at the end. */
  private _column: number | null = null;
  /** The next character replaces the rest of the line. */
  private _replaces = false;
}

/** The color codes in effect after `text`, given those `before`; a block split here must start with them. */
export function coloursAfter(before: string, text: string): string {
  let active = before;
  for (const match of text.matchAll(SGR)) {
    const codes = match[1];
    active = codes === '' || /^0+$/.test(codes) ? '' : active + match[0];
  }
  return active;
}
