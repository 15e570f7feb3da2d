import { expect, test } from 'vitest';
import { arrange, IOrder, IRow, ordered, shortPlace } from './rows';

const row = (rank: number, fields: Partial<IRow>): IRow => ({
  rank,
  state: 'idle',
  pid: rank,
  host: '',
  device: 'cpu',
  memory: null,
  cpu: null,
  cell: null,
  line: '',
  call: null,
  ...fields
});
const rows = [
  row(0, { memory: 5, line: 'line 10' }),
  row(1, { memory: null }),
  row(2, { memory: 9, line: 'line 9' }),
  row(3, { memory: 5 })
];
const by = (order: IOrder): number[] => arrange(rows, order).map(({ rank }) => rank);

test('rows are sorted by any column, and what is not known comes last', () => {
  expect(by({ column: 'rank', isDown: true })).toEqual([3, 2, 1, 0]);
  expect(by({ column: 'memory', isDown: true })).toEqual([2, 0, 3, 1]);
  expect(by({ column: 'memory', isDown: false })).toEqual([0, 3, 2, 1]);
  expect(by({ column: 'line', isDown: false })).toEqual([2, 0, 1, 3]);
});

test('a second click turns the order; numbers begin with the greatest', () => {
  const first = ordered({ column: 'rank', isDown: false }, 'memory');
  expect(first).toEqual({ column: 'memory', isDown: true });
  expect(ordered(first, 'memory').isDown).toBe(false);
  expect(ordered(first, 'state').isDown).toBe(false);
});

test('a place has no name of the cell that stands beside it', () => {
  expect(shortPlace('line 4 of cell [14]: time.sleep(1)', { execution_count: 14 })).toBe('line 4: time.sleep(1)');
  expect(shortPlace('line 4 of cell [9]: step()', { execution_count: 14 })).toBe('line 4 of cell [9]: step()');
  expect(shortPlace('line 4 of cell [14]', null)).toBe('line 4 of cell [14]');
});
