/**
 * What a terminal would show of a stream: carriage returns, backspaces and "erase to the end of the line" applied.
 *
 * The log keeps bytes exactly as they were written, so that a progress bar is thousands of `\r`; the panel shows the last.
 */

/** Complete lines, and the last one, that more text may still change: show `settle(open)`. */
export interface ITerminalText {
  readonly lines: string[];
  readonly open: string;
}

const CONTROL = /[\r\b]|\x1b\[[0-2]?K/; // eslint-disable-line no-control-regex
const ESCAPE = '\x1b[';
const SGR = /\x1b\[([\d;]*)m/g; // eslint-disable-line no-control-regex

/** Append `text` to a line that is not complete; returns the lines completed and what is left open. */
export function writeText(open: string, text: string): ITerminalText {
  const parts = (open + text).split('\n');
  const last = parts.pop() ?? '';
  return {
    lines: parts.map(part => settle(part.endsWith('\r') ? part.slice(0, -1) : part)),
    open: compact(last)
  };
}

/** Shorten an open line to what it shows and what has been written over it so far: the column must not be lost. */
function compact(line: string): string {
  const cut = line.lastIndexOf('\r');
  return cut < 0 ? line : settle(line.slice(0, cut)) + line.slice(cut);
}

/** Apply the control characters of one line. */
export function settle(line: string): string {
  if (!CONTROL.test(line)) {
    return line;
  }
  return line.split('\r').reduce((shown, written) => overwrite(shown, written), '');
}

function overwrite(shown: string, written: string): string {
  const erase = /^\x1b\[[0-2]?K/.test(written); // eslint-disable-line no-control-regex
  const text = backspaces(written.replace(/\x1b\[[0-2]?K/g, '')); // eslint-disable-line no-control-regex
  if (erase || text.length >= shown.length || shown.includes(ESCAPE) || text.includes(ESCAPE)) {
    // With colours in it, the columns of a line cannot be counted by its length: the newer text wins as a whole.
    return text.length > 0 || erase ? text : shown;
  }
  return text + shown.slice(text.length);
}

function backspaces(text: string): string {
  let result = text;
  while (result.includes('\b')) {
    const next = result.replace(/[^\b]\x08|^\x08+/, ''); // eslint-disable-line no-control-regex
    if (next === result) {
      break;
    }
    result = next;
  }
  return result;
}

/** The colour codes in force after `text`, when `before` were in force: what a block cut here must begin with. */
export function coloursAfter(before: string, text: string): string {
  let active = before;
  for (const match of text.matchAll(SGR)) {
    const codes = match[1];
    active = codes === '' || /^0+$/.test(codes) ? '' : active + match[0];
  }
  return active;
}
