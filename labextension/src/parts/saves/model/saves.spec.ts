import { describe, expect, it } from 'vitest';
import type { ISkipped } from '../../../services/protocol';
import { cellsToRerun, proposedName } from './saves';

const skipped = (name: string, ranks: string, count: number | null, code: string | null): ISkipped => ({
  name,
  ranks,
  reason: 'it is a generator',
  execution_count: count,
  code
});

describe('proposedName', () => {
  it('sorts by time, and is a name that the server takes', () => {
    const names = [9, 10].map(hour => proposedName('my group', new Date(2026, 0, 5, hour, 7, 3)));
    expect(names).toEqual(['my-group-2026-01-05-09.07.03', 'my-group-2026-01-05-10.07.03']);
    expect(proposedName('x'.repeat(200), new Date()).length).toBeLessThanOrEqual(100);
  });
});

describe('cellsToRerun', () => {
  it('has each cell once, with all of its ranks, in the order in which they ran', () => {
    const cells = cellsToRerun([
      skipped('lines', '0-1', 7, 'lines = open(path)'),
      skipped('reader', '2', 7, 'lines = open(path)'),
      skipped('loader', '0', 3, 'loader = iter(data)'),
      skipped('unknown', '0', null, null)
    ]);
    expect(cells.map(({ executionCount, ranks, names }) => [executionCount, ranks, names])).toEqual([
      [3, '0', ['loader']],
      [7, '0-2', ['lines', 'reader']]
    ]);
  });
});
