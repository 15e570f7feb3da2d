import { describe, expect, it } from 'vitest';
import { ansiAttributes, parseAnsi } from './ansi';

function classes(text: string): string[][] {
  return parseAnsi(text).segments.map(segment => ansiAttributes(segment.style).classes);
}

describe('parseAnsi', () => {
  it('leaves plain text in one piece', () => {
    const { segments } = parseAnsi('a\nb');
    expect(segments).toHaveLength(1);
    expect(segments[0].text).toBe('a\nb');
  });

  it('knows colours, bold and reset', () => {
    expect(classes('a\x1b[31mb\x1b[1mc\x1b[0md')).toEqual([
      [],
      ['ansi-red-fg'],
      ['ansi-red-intense-fg', 'ansi-bold'],
      []
    ]);
  });

  it('carries the style to the next piece', () => {
    const { style } = parseAnsi('a\x1b[32;44m');
    const { segments } = parseAnsi('b', style);
    expect(ansiAttributes(segments[0].style).classes).toEqual(['ansi-green-fg', 'ansi-blue-bg']);
  });

  it('inverts', () => {
    expect(classes('\x1b[7ma')).toEqual([['ansi-default-inverse-fg', 'ansi-default-inverse-bg']]);
  });

  it('knows 256 colours and RGB', () => {
    const [a, b] = parseAnsi('\x1b[38;5;196ma\x1b[48;2;1;2;3mb').segments;
    expect(ansiAttributes(a.style).css).toBe('color:rgb(255,0,0)');
    expect(ansiAttributes(b.style).css).toBe('color:rgb(255,0,0);background-color:rgb(1,2,3)');
  });

  it('drops sequences that mean nothing in a cell', () => {
    const text = 'a\x1b[2Kb\x1b[?25lc\x1b]0;title\x07d';
    const { segments } = parseAnsi(text);
    expect(segments.map(segment => segment.text).join('')).toBe('abcd');
  });

  it('keeps the text of what was not finished', () => {
    const { segments } = parseAnsi('a\x1b]8;;\x1b]8;;\x1b[1;');
    expect(segments.map(segment => segment.text).join('')).toBe('a]8;;]8;;[1;');
  });
});
