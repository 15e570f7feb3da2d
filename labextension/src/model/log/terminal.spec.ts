import { describe, expect, it } from 'vitest';
import { coloursAfter, settle, writeText } from './terminal';

describe('writeText', () => {
  it.each([
    ['', 'a\nb', ['a'], 'b'],
    ['b', 'c\n', ['bc'], ''],
    ['', '10%\r20%\r30%', [], '20%\r30%'],
    ['10%\r', '9%', [], '10%\r9%'],
    ['', 'dos\r\nnext', ['dos'], 'next'],
    ['', 'done\r', [], 'done\r'],
    ['done\r', '\n', ['done'], ''],
    ['', 'abc\b\bx\n', ['ax'], ''],
    ['', 'a long line\r\x1b[Kshort\n', ['short'], '']
  ])('%j + %j', (open, text, lines, rest) => {
    expect(writeText(open, text)).toEqual({ lines, open: rest });
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

it('replaces a coloured line as a whole', () => {
  expect(settle('\x1b[31mred and long\x1b[0m\rab')).toBe('ab');
});

it('knows the colours in force', () => {
  expect(coloursAfter('', 'x\x1b[31my\x1b[1mz')).toBe('\x1b[31m\x1b[1m');
  expect(coloursAfter('\x1b[31m', 'y\x1b[0mz')).toBe('');
  expect(coloursAfter('', '\x1b[mz\x1b[32m')).toBe('\x1b[32m');
});
