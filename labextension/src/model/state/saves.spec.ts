import { describe, expect, it } from 'vitest';
import type { ISave, ISkipped } from '../../services/protocol';
import { cellsToRerun, clockTime, lastSaveOf, proposedName } from './saves';

const skipped = (name: string, ranks: string, count: number | null, code: string | null): ISkipped => ({
  name,
  ranks,
  reason: 'it is a generator',
  execution_count: count,
  code
});

const save = (name: string, at: number, more: Partial<ISave> = {}): ISave =>
  ({ name, group: 'train', world_size: 2, saved_at: at, problem: null, ...more }) as ISave;

describe('proposedName', () => {
  it('sorts by time, and is a name that the server takes', () => {
    const names = [9, 10].map(hour => proposedName('my group', new Date(2026, 0, 5, hour, 7, 3)));
    expect(names).toEqual(['my-group-2026-01-05-09.07.03', 'my-group-2026-01-05-10.07.03']);
    expect(proposedName('x'.repeat(200), new Date()).length).toBeLessThanOrEqual(100);
  });
});

describe('clockTime', () => {
  it('has the date of another day only', () => {
    const noon = new Date(2026, 0, 5, 12, 0).getTime() / 1000;
    expect(clockTime(noon - 3600, noon)).not.toContain('2026');
    expect(clockTime(noon - 86400, noon)).toContain('2026');
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

describe('lastSaveOf', () => {
  it('is the newest of a group with this name and number of ranks that can be restored', () => {
    const saves = [
      save('old', 1),
      save('new', 5),
      save('other', 9, { group: 'sweep' }),
      save('larger', 9, { world_size: 4 }),
      save('damaged', 9, { problem: 'Its files are not there.' })
    ];
    expect(lastSaveOf(saves, { name: 'train', world_size: 2 })?.name).toBe('new');
    expect(lastSaveOf(saves, { name: 'none', world_size: 2 })).toBeNull();
  });
});
