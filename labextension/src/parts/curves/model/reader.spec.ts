import { describe, expect, it } from 'vitest';
import type { ISavedItem } from '../../../services/protocol';
import { CurveReader } from './reader';
import { MAX_POINTS } from './series';
import { csvOf, tableOf } from './curvetable';

const NEVER = Infinity;

function item(ranks: string, text: string): ISavedItem {
  return { ranks, output: { output_type: 'stream', name: 'stdout', text } };
}

/** What a rank printed up to a line. */
function lines(rank: number, from: number, to: number): string {
  return Array.from({ length: to - from }, (_, i) => `step ${from + i} loss ${rank}.${from + i}5\n`).join('');
}

/** A view as the server would show it: of each rank the first lines, and what fits in the tail. */
function view(progress: readonly number[], head: number, tail: number): ISavedItem[] {
  const items = progress.map((num, rank) => item(String(rank), lines(rank, 0, Math.min(num, head))));
  const long = progress.flatMap((num, rank) => (num > head ? [{ num, rank }] : []));
  for (const { num, rank } of long.filter(each => each.num > head + tail)) {
    items.push({ ranks: String(rank), elided: { bytes: 1, lines: num - head - tail } });
  }
  return [...items, ...long.map(({ num, rank }) => item(String(rank), lines(rank, Math.max(head, num - tail), num)))];
}

function valuesOf(reader: CurveReader, rank: number): number[] {
  return reader.curves.find(({ name }) => name === 'loss')?.ranks.get(rank)?.means ?? [];
}

describe('curves', () => {
  it('have each line once, however the view changes meanwhile', () => {
    let seed = 7;
    const random = (below: number): number => (seed = (seed * 48271) % 2147483647) % below;
    for (let round = 0; round < 30; round++) {
      const reader = new CurveReader();
      const progress = [0, 0, 0];
      while (Math.min(...progress) < 60) {
        // Never more than the tail holds, so that nothing is missed.
        progress.forEach((num, rank) => (progress[rank] = num + random(8)));
        // The deadline is over each time, or never.
        const deadline = random(2) ? NEVER : 0;
        const items = view(progress, 20, 10);
        reader.read(items, deadline);
        reader.read(items, NEVER);
      }
      expect(reader.numMissed).toBe(0);
      progress.forEach((num, rank) => {
        const expected = Array.from({ length: num }, (_, i) => Number(`${rank}.${i}5`));
        expect(valuesOf(reader, rank)).toEqual(expected);
      });
    }
  });

  it('count the lines that are only in the log', () => {
    const reader = new CurveReader();
    expect(reader.read(view([100], 20, 10), NEVER)).toBe(true);
    expect(reader.numMissed).toBe(70);
    expect(valuesOf(reader, 0)).toHaveLength(30);
  });

  it('take a line that ranks share for each of them, also for a rank that joins later', () => {
    const reader = new CurveReader();
    reader.read([item('0', lines(0, 0, 5))], NEVER);
    reader.read([item('0-1', lines(0, 0, 4)), item('0', lines(0, 4, 5))], NEVER);
    expect(valuesOf(reader, 0)).toHaveLength(5);
    expect(valuesOf(reader, 1)).toHaveLength(4);
  });

  it('go on after the output was cleared', () => {
    const reader = new CurveReader();
    reader.read([item('0', lines(0, 0, 5))], NEVER);
    const cleared = [item('0', lines(0, 5, 7))];
    expect(reader.read(cleared, NEVER)).toBe(false);
    expect(reader.read(cleared, NEVER)).toBe(true);
    expect(valuesOf(reader, 0)).toHaveLength(7);
  });

  it('need three numbers, one of them not whole', () => {
    const reader = new CurveReader();
    reader.read([item('0', 'loss 0.5\nloss 0.4\nrank 1\nrank 2\nrank 3\n')], NEVER);
    expect(reader.curves).toEqual([]);
    reader.read([item('0', 'loss 0.5\nloss 0.4\nrank 1\nrank 2\nrank 3\nloss 0.3\n')], NEVER);
    expect(reader.curves.map(({ name }) => name)).toEqual(['loss']);
  });

  it('have a bounded number of points, which keep what is extreme', () => {
    const reader = new CurveReader();
    const all = Array.from({ length: 10_000 }, (_, i) => (i === 5000 ? 99.5 : 0.5));
    reader.read([item('0', all.map((value, i) => `step ${i} loss ${value.toFixed(1)}\n`).join(''))], NEVER);
    const [curve] = reader.curves;
    const { places, mean, high, low } = tableOf(curve);
    expect(places.length).toBeLessThanOrEqual(MAX_POINTS);
    expect(places[1]).toBe(curve.ranks.get(0)!.stride);
    expect(Math.max(...(high as number[]))).toBe(99.5);
    expect(Math.min(...(low as number[]))).toBe(0.5);
    const total = all.reduce((sum, value) => sum + value, 0) / all.length;
    const size = (i: number): number => Math.min(places[1], all.length - places[i]);
    const weighted = (mean as number[]).reduce((sum, value, i) => sum + value * size(i), 0) / all.length;
    expect(weighted).toBeCloseTo(total, 9);
  });

  it('are over steps if these rise on every rank, else over a count', () => {
    const reader = new CurveReader();
    reader.read(
      [item('0', 'step 10 a 0.5\nstep 20 a 0.4\nstep 30 a 0.3\n'), item('1', 'step 10 a 0.7\nstep 30 a 0.5\n')],
      NEVER
    );
    const table = tableOf(reader.curves[0]);
    expect(table).toMatchObject({ places: [10, 20, 30], low: [0.5, 0.4, 0.3], high: [0.7, 0.4, 0.5] });
    expect(table.mean.map(value => value!.toFixed(2))).toEqual(['0.60', '0.40', '0.40']);
    expect(table.byRank.get(1)).toEqual([0.7, null, 0.5]);
    reader.read([item('2', 'step 1 a 1.0\nstep 1 a 2.0\n')], NEVER);
    expect(tableOf(reader.curves[0]).places).toEqual([0, 1, 2]);
  });

  it('leave out nan, and say where it was', () => {
    const reader = new CurveReader();
    reader.read([item('0', 'a 0.5\na nan\na 0.3\n')], NEVER);
    expect(tableOf(reader.curves[0]).mean).toEqual([0.5, null, 0.3]);
    expect(reader.curves[0].ranks.get(0)!.oddAt).toBe(1);
  });

  it('are saved as comma-separated values', () => {
    const reader = new CurveReader();
    reader.read([item('0-1', 'step 3 loss 0.5\nstep 4 loss 0.25\nstep 5 loss 0.125\n')], NEVER);
    const rows = csvOf(reader.curves).split('\n');
    expect(rows[0]).toBe('curve,step,rank,value,lowest,highest');
    expect(rows[1]).toBe('loss,3,0,0.5,0.5,0.5');
    expect(rows).toHaveLength(8);
  });
});

it('is no curve if it is the same each time and of no step', () => {
  const reader = new CurveReader();
  const text = [0, 1, 2].map(i => `using lr 0.001\nstep ${i} momentum 0.9\nloss ${i}.5\nbad nan\n`).join('');
  reader.read([item('0', text)], NEVER);
  expect(reader.curves.map(({ name }) => name).sort()).toEqual(['bad', 'loss', 'momentum']);
});
