import { expect, test } from 'vitest';
import type { IMemorySample, IPastSamples, IRankMemory } from '../../../services/protocol';
import { SampleColumns } from './columns';
import { decimate, gapsIn, greatest } from './decimate';

const row = (rank: number, resident: number, allocated: number | null = null): IRankMemory => ({
  rank,
  resident_bytes: resident,
  allocated_bytes: allocated,
  reserved_bytes: allocated,
  peak_bytes: allocated,
  device_used_bytes: allocated,
  cpu_percent: 5
});
const sample = (at: number, ...ranks: IRankMemory[]): IMemorySample => ({ at, ranks });
const page = (times: number[], resident: (number | null)[][], gaps: IPastSamples['gaps'] = []): IPastSamples => ({
  times,
  ranks: resident.map((values, rank) => ({
    rank,
    resident_bytes: values,
    allocated_bytes: null,
    reserved_bytes: null,
    peak_bytes: null,
    device_used_bytes: null,
    cpu_percent: values
  })),
  seen: [],
  gaps,
  devices: [],
  more: false
});

test('pages and live samples follow each other, and none is there twice', () => {
  const columns = new SampleColumns();
  columns.append(
    page(
      [10, 11],
      [
        [1, 2],
        [3, null]
      ]
    )
  );
  columns.append(
    page(
      [11, 12],
      [
        [2, 5],
        [4, 6]
      ]
    )
  );
  columns.add(sample(12, row(0, 99)));
  columns.add(sample(13, row(0, 7), row(2, 8)));
  expect(columns.times).toEqual([10, 11, 12, 13]);
  expect(columns.column(0, 'resident_bytes')).toEqual([1, 2, 5, 7]);
  expect(columns.column(1, 'resident_bytes')).toEqual([3, NaN, 6, NaN]);
  expect(columns.column(2, 'resident_bytes')).toEqual([NaN, NaN, NaN, 8]);
  expect(columns.latest(1, 'resident_bytes')).toBeNull();
  expect(columns.ranks).toEqual([0, 1, 2]);
  expect(columns.memory).toBe('resident_bytes');
});

test('memory is what the allocator gave out, where there is a device', () => {
  const columns = new SampleColumns();
  columns.add(sample(1, row(0, 10, 4)));
  expect(columns.memory).toBe('allocated_bytes');
  expect(columns.latest(0, 'reserved_bytes')).toBe(4);
});

test('a time without samples is a gap, in pages and live', () => {
  const columns = new SampleColumns();
  columns.append(page([10, 11, 50, 51], [[1, 1, 1, 1]], [{ begin: 11, end: 50 }]));
  columns.add(sample(55, row(0, 1)));
  columns.add(sample(90, row(0, 1)));
  expect(columns.afterGap).toEqual([false, false, true, false, false, true]);
  expect(gapsIn(columns.times, columns.afterGap, { from: 0, to: 100 })).toEqual([
    { from: 0, to: 10 },
    { from: 11, to: 50 },
    { from: 55, to: 90 }
  ]);
  expect(gapsIn(columns.times, columns.afterGap, { from: 20, to: 60 })).toEqual([
    { from: 20, to: 50 },
    { from: 55, to: 60 }
  ]);
  expect(gapsIn([], [], { from: 1, to: 2 })).toEqual([{ from: 1, to: 2 }]);
});

test('an hour is kept', () => {
  const columns = new SampleColumns();
  for (let at = 1; at <= 5000; at++) {
    columns.add(sample(at, row(0, at)));
  }
  expect(columns.times.length).toBeLessThanOrEqual(4000);
  expect(columns.times.length).toBeGreaterThanOrEqual(3600);
  expect(columns.column(0, 'resident_bytes')).toEqual(columns.times);
});

test('no peak and no valley is lost in columns of pixels', () => {
  const times = Array.from({ length: 3600 }, (_, i) => i);
  const values = times.map(i => 100 + (i % 7));
  values[1234] = 900;
  values[2345] = 1;
  const none = times.map(() => false);
  const { x, low, high, starts } = decimate(times, values, none, { from: 0, to: 3599 }, 300);
  expect(x.length).toBeLessThanOrEqual(301);
  expect(Math.max(...high)).toBe(900);
  expect(Math.min(...low)).toBe(1);
  expect(x[high.indexOf(900)]).toBe(Math.round((1234 / 3599) * 300));
  expect(starts).toEqual([0]);
  expect([...x].sort((a, b) => a - b)).toEqual(x);
});

test('few numbers keep their places, lines go to the edges, and are broken where nothing is known', () => {
  const times = [0, 10, 20, 30, 40, 50];
  const values = [1, 2, NaN, 4, 5, 6];
  const gap = [false, false, false, false, true, false];
  const { x, low, starts } = decimate(times, values, gap, { from: 5, to: 45 }, 40);
  expect(x).toEqual([-5, 5, 25, 35, 45]);
  expect(low).toEqual([1, 2, 4, 5, 6]);
  expect(starts).toEqual([0, 2, 3]);
  expect(greatest(times, [1, 2, NaN, 4, 99, 6], { from: 0, to: 25 })).toBe(4);
});
