/** A curve as columns over shared places, for a chart and for a file. Pure. */
import type { Curve, Series } from './series';

/** Columns of one length; null where ranks have no finite number. */
export interface ITable {
  places: number[];
  mean: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
  byRank: Map<number, (number | null)[]>;
}

export function tableOf(curve: Curve): ITable {
  const bySteps = curve.hasSteps;
  const ranks = [...curve.ranks].sort(([a], [b]) => a - b);
  const places = union(ranks.map(([, series]) => series.places(bySteps)));
  const rowOf = new Map(places.map((place, row) => [place, row]));
  const empty = (): (number | null)[] => places.map(() => null);
  const table: ITable = { places, mean: empty(), low: empty(), high: empty(), byRank: new Map() };
  const sums = places.map(() => 0);
  const counts = places.map(() => 0);
  for (const [rank, series] of ranks) {
    const column = empty();
    series.places(bySteps).forEach((place, i) => {
      const value = series.means[i];
      if (Number.isFinite(value)) {
        const row = rowOf.get(place)!;
        column[row] = value;
        sums[row] += value;
        counts[row] += 1;
        widen(table, row, series, i);
      }
    });
    table.byRank.set(rank, column);
  }
  table.mean = sums.map((sum, row) => (counts[row] > 0 ? sum / counts[row] : null));
  return table;
}

/** All curves as comma-separated values, a line for each point of each rank. */
export function csvOf(curves: readonly Curve[]): string {
  const lines = ['curve,step,rank,value,lowest,highest'];
  for (const curve of curves) {
    for (const [rank, series] of [...curve.ranks].sort(([a], [b]) => a - b)) {
      series.places(curve.hasSteps).forEach((place, i) => {
        const { means, lows, highs } = series;
        lines.push([curve.name, place, rank, means[i], lows[i], highs[i]].join(','));
      });
    }
  }
  return `${lines.join('\n')}\n`;
}

function widen({ low, high }: ITable, row: number, { lows, highs }: Series, i: number): void {
  low[row] = Math.min(low[row] ?? Infinity, lows[i]);
  high[row] = Math.max(high[row] ?? -Infinity, highs[i]);
}

function union(all: readonly number[][]): number[] {
  const [first = []] = all;
  if (all.every(places => places.length === first.length && places.every((place, i) => place === first[i]))) {
    return first;
  }
  return [...new Set(all.flat())].sort((a, b) => a - b);
}
