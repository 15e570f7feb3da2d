/**
 * The text of a stream, which grows at its end. Only new text is rendered:
 * complete lines once, in blocks of bounded size, so that the browser lays out
 * the last block only; the open line each time.
 */
import { ansiAttributes, IAnsiStyle, parseAnsi, PLAIN } from './ansi';

/** Approximate size of a block. */
const BLOCK_CHARS = 8000;
/** A line with more pieces than this is shown in one color, because it takes too long to lay out. */
const MAX_PIECES = 2000;

const URL = /https?:\/\/[^\s<>"'`\])}\x1b]+[^\s<>"'`\])}.,:;!?\x1b]/g; // eslint-disable-line no-control-regex

export class StreamText {
  constructor() {
    this.node = document.createElement('pre');
    this._block = this._newBlock();
    this._tail = document.createElement('span');
    this.node.append(this._tail);
  }

  readonly node: HTMLPreElement;

  /** Show this text, which usually extends the previous one. */
  set(text: string): void {
    if (text === this._text) {
      return;
    }
    if (!text.startsWith(this._done)) {
      this._clear();
    }
    this._text = text;
    const end = text.lastIndexOf('\n') + 1;
    if (end > this._done.length) {
      this._writeLines(text.slice(this._done.length, end));
      this._done = text.slice(0, end);
    }
    this._tail.replaceChildren();
    write(this._tail, text.slice(end), this._style);
  }

  private _writeLines(text: string): void {
    let start = 0;
    while (start < text.length) {
      const limit = start + BLOCK_CHARS - this._blockChars;
      let end = text.length;
      if (limit < text.length) {
        end = text.indexOf('\n', Math.max(limit, start)) + 1 || text.length;
      }
      this._style = write(this._block, text.slice(start, end), this._style);
      this._blockChars += end - start;
      if (this._blockChars >= BLOCK_CHARS) {
        this._block = this._newBlock();
      }
      start = end;
    }
  }

  private _newBlock(): HTMLElement {
    const block = document.createElement('div');
    this.node.insertBefore(block, this._tail ?? null);
    this._blockChars = 0;
    return block;
  }

  private _clear(): void {
    this._done = '';
    this._style = PLAIN;
    this.node.replaceChildren(this._tail);
    this._block = this._newBlock();
  }

  private _block: HTMLElement;
  private _blockChars = 0;
  /** The complete lines, which do not change any more. */
  private _done = '';
  private _style: IAnsiStyle = PLAIN;
  private _tail: HTMLElement;
  private _text = '';
}

/** Append text with its colors; returns the style at its end. */
export function write(node: HTMLElement, text: string, start: IAnsiStyle): IAnsiStyle {
  const { segments, style } = parseAnsi(text, start);
  if (segments.length > MAX_PIECES) {
    appendText(node, segments.map(segment => segment.text).join(''));
    return style;
  }
  for (const segment of segments) {
    const { classes, css } = ansiAttributes(segment.style);
    if (classes.length === 0 && !css) {
      appendText(node, segment.text);
      continue;
    }
    const span = document.createElement('span');
    span.className = classes.join(' ');
    span.style.cssText = css;
    appendText(span, segment.text);
    node.append(span);
  }
  return style;
}

/** Append text, with URLs as links. */
function appendText(node: HTMLElement, text: string): void {
  let position = 0;
  if (text.includes('://')) {
    for (const { 0: url, index } of text.matchAll(URL)) {
      appendPlain(node, text.slice(position, index));
      const link = document.createElement('a');
      link.href = url;
      link.rel = 'noopener';
      link.target = '_blank';
      link.textContent = url;
      node.append(link);
      position = index + url.length;
    }
  }
  appendPlain(node, text.slice(position));
}

function appendPlain(node: HTMLElement, text: string): void {
  if (node.lastChild instanceof Text) {
    node.lastChild.appendData(text);
  } else if (text) {
    node.append(text);
  }
}
