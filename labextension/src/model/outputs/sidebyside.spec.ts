import { describe, expect, it } from 'vitest';
import { isFigure, sideBySide } from './sidebyside';

let next = 0;

function item(ranks: string, type: string) {
  const output = {
    output_type: type === 'stream' ? 'stream' : 'display_data',
    ...(type === 'stream' ? { text: 'a\n' } : { data: { [type]: '', 'text/plain': '' } })
  };
  return { key: `i${next++}`, ranks, output };
}

function runs(items: ReturnType<typeof item>[]): string[] {
  return [...new Set(sideBySide(items).values())].map(run => run.map(({ ranks }) => ranks).join(' | '));
}

describe('figures of several ranks', () => {
  it('stand side by side, and text ends the row', () => {
    const png = 'image/png';
    expect(runs([item('0', png), item('1-3', png), item('0-3', 'stream'), item('0', png), item('1', png)])).toEqual([
      '0 | 1-3',
      '0 | 1'
    ]);
  });

  it('have a row for each figure of a rank', () => {
    expect(
      runs([item('0', 'image/png'), item('1', 'text/html'), item('0', 'image/png'), item('1', 'image/svg+xml')])
    ).toEqual(['0 | 1', '0 | 1']);
  });

  it('stand alone if they are equal, or of one rank', () => {
    expect(runs([item('0-7', 'image/png'), item('0-7', 'text/html')])).toEqual([]);
    expect(runs([item('3', 'image/png'), item('3', 'image/png'), item('3', 'image/png')])).toEqual([]);
  });

  it('are no text, errors or widgets', () => {
    expect(isFigure({ output_type: 'execute_result', data: { 'text/plain': '3' } })).toBe(false);
    expect(isFigure({ output_type: 'error', ename: 'E', evalue: '', traceback: [] })).toBe(false);
    expect(
      isFigure({
        output_type: 'display_data',
        data: { 'application/vnd.jupyter.widget-view+json': {}, 'text/html': '' }
      })
    ).toBe(false);
    expect(isFigure({ output_type: 'display_data', data: { 'application/vnd.plotly.v1+json': {} } })).toBe(true);
  });
});
