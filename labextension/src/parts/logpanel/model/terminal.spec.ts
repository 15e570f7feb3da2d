import { describe, expect, it } from 'vitest';
import vectors from '../../../../../tests/vectors/terminal.json';
import { coloursAfter, settle, writeText } from './terminal';

function shown(chunks: string[]): string {
  let open = '';
  let text = '';
  for (const chunk of chunks) {
    const written = writeText(open, chunk);
    text += written.lines.map(line => `${line}\n`).join('');
    open = written.open;
  }
  return text + settle(open);
}

describe('writeText', () => {
  it.each(vectors)('shows $name', vector => {
    expect(shown(vector.chunks)).toBe(vector.shown);
    expect(shown(Array.from(vector.chunks.join('')))).toBe(vector.shown);
  });

  it('gives the same lines however the text is cut', () => {
    const text = 'a\r\nbar 1\rbar 22\rx\nend\b\bED\n';
    const whole = writeText('', text);
    for (let cut = 0; cut <= text.length; cut++) {
      const first = writeText('', text.slice(0, cut));
      const second = writeText(first.open, text.slice(cut));
      expect([...first.lines, ...second.lines]).toEqual(whole.lines);
    }
  });
});

it('knows the colours in force', () => {
  expect(coloursAfter('', 'x\x1b[31my\x1b[1mz')).toBe('\x1b[31m\x1b[1m');
  expect(coloursAfter('\x1b[31m', 'y\x1b[0mz')).toBe('');
  expect(coloursAfter('', '\x1b[mz\x1b[32m')).toBe('\x1b[32m');
});
