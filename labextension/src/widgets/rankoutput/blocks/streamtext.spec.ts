import { describe, expect, it } from 'vitest';
import { StreamText } from './streamtext';

describe('StreamText', () => {
  it('appends to the text that is there', () => {
    const stream = new StreamText();
    stream.set('a\n');
    const block = stream.node.firstChild!;
    const text = block.firstChild;
    stream.set('a\nb\n');
    expect(block.firstChild).toBe(text);
    expect(stream.node.textContent).toBe('a\nb\n');
  });

  it('rewrites the last line', () => {
    const stream = new StreamText();
    stream.set('a\n 10%');
    stream.set('a\n 90%');
    expect(stream.node.textContent).toBe('a\n 90%');
    stream.set('a\n100%\ndone');
    expect(stream.node.textContent).toBe('a\n100%\ndone');
  });

  it('starts over when lines changed', () => {
    const stream = new StreamText();
    stream.set('a\nb\n');
    stream.set('x\n');
    expect(stream.node.textContent).toBe('x\n');
  });

  it('is exact however it is cut into blocks', () => {
    const stream = new StreamText();
    let text = '';
    for (let i = 0; i < 4000; i++) {
      text += `line ${i}\n`.repeat(i % 3);
      if (i % 7 === 0) {
        stream.set(text);
      }
    }
    stream.set(text);
    expect(stream.node.textContent).toBe(text);
    expect(stream.node.children.length).toBeGreaterThan(3);
  });

  it('carries colours over pieces', () => {
    const stream = new StreamText();
    stream.set('\x1b[31mred\n');
    stream.set('\x1b[31mred\nstill\x1b[0m no\n');
    expect(stream.node.querySelectorAll('.ansi-red-fg')).toHaveLength(2);
    expect(stream.node.textContent).toBe('red\nstill no\n');
  });

  it('makes links of addresses, and of nothing else', () => {
    const stream = new StreamText();
    stream.set('see https://example.org/a?b=1, or <b>javascript:x</b>\n');
    const links = stream.node.querySelectorAll('a');
    expect(links).toHaveLength(1);
    expect(links[0].href).toBe('https://example.org/a?b=1');
    expect(stream.node.querySelector('b')).toBeNull();
  });
});
