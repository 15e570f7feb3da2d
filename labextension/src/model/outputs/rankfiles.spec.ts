import { describe, expect, it } from 'vitest';
import type { ISavedItem } from '../../services/protocol';
import { filesOf, textOf } from './rankfiles';

const printed = (text: string): ISavedItem => ({ ranks: '3', output: { output_type: 'stream', name: 'stdout', text } });
const shown = (data: Record<string, string>): ISavedItem => ({
  ranks: '3',
  output: { output_type: 'display_data', data, metadata: {} }
});

describe('the output of a rank', () => {
  it('is text without colors, each output on lines of its own', () => {
    const error: ISavedItem = {
      ranks: '3',
      output: { output_type: 'error', ename: 'E', evalue: '', traceback: ['\u001b[31mE\u001b[0m', 'at'] }
    };
    const items = [
      printed('a'),
      printed('b'),
      shown({ 'text/plain': '<Figure>' }),
      printed('c\n'),
      error,
      { ranks: '3', elided: { lines: 7, bytes: 70 } }
    ];
    expect(textOf(items)).toBe('ab\n<Figure>\nc\nE\nat\n... 7 more lines (70 bytes) in the log of the rank\n');
    expect(textOf([])).toBe('');
  });

  it('has a file for each figure and table, of the best kind', () => {
    const items = [
      printed('a\n'),
      shown({ 'image/png': 'iVBO', 'text/plain': 'F' }),
      shown({ 'image/png': 'iVBO', 'image/svg+xml': '<svg/>' }),
      shown({ 'text/html': '<table>' })
    ];
    const files = filesOf(items, 3);
    expect(files.map(({ name, isBase64 }) => [name, isBase64])).toEqual([
      ['rank-3.txt', false],
      ['rank-3-figure-1.png', true],
      ['rank-3-figure-2.svg', false],
      ['rank-3-figure-3.html', false]
    ]);
    expect(files[2].content).toBe('<svg/>');
  });

  it('has no files if there is none', () => {
    expect(filesOf([], 0)).toEqual([]);
  });
});
