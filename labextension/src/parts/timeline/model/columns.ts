/** The samples of a group as columns: the times, and for each rank and metric a number for each of them. */
import type { IMemorySample, IPastSamples, IRankMemory, IRankSamples } from '../../../services/protocol';

/** A longer time without samples is a gap: idle ranks send a sample every 4 s. */
const GAP_SECONDS = 15;
/** An hour of a sample a second, and some more; then the oldest go. */
const MAX_TIMES = 4000;
const DROPPED = 400;

export const METRICS = [
  'resident_bytes',
  'allocated_bytes',
  'reserved_bytes',
  'device_used_bytes',
  'cpu_percent'
] as const;

export type Metric = (typeof METRICS)[number];

type Values = number[];

export class SampleColumns {
  /** In seconds, rising. */
  readonly times: number[] = [];
  /** For each time whether there were no samples for a while before it. */
  readonly afterGap: boolean[] = [];

  get ranks(): number[] {
    return [...this._byRank.keys()].sort((a, b) => a - b);
  }

  get last(): number {
    return this.times.length > 0 ? this.times[this.times.length - 1] : 0;
  }

  /** Whether the ranks have a device allocator. */
  get hasDevice(): boolean {
    return this._hasDevice;
  }

  /** What is drawn as memory: the allocator's view on a device, the process's on CPU. */
  get memory(): Metric {
    return this._hasDevice ? 'allocated_bytes' : 'resident_bytes';
  }

  /** The numbers of a rank, as many as there are times; NaN where there is none. */
  column(rank: number, metric: Metric): readonly number[] {
    return this._byRank.get(rank)?.[metric] ?? [];
  }

  /** The latest number of a rank, or null. */
  latest(rank: number, metric: Metric): number | null {
    const column = this.column(rank, metric);
    const value = column[column.length - 1];
    return value === undefined || Number.isNaN(value) ? null : value;
  }

  /** Add a page of past samples, if it is newer than what is there. */
  append(page: IPastSamples): void {
    const first = page.times.findIndex(at => at > this.last);
    if (first < 0) {
      return;
    }
    const before = this.last;
    const begin = this.times.length;
    for (let i = first; i < page.times.length; i++) {
      const at = page.times[i];
      const earlier = i > first ? page.times[i - 1] : before;
      this.times.push(at);
      this.afterGap.push(earlier > 0 && page.gaps.some(gap => gap.begin < at && gap.end > earlier));
    }
    for (const samples of page.ranks) {
      this._appendRank(samples, first, begin);
    }
    this._fill();
  }

  /** Add a live sample, if it is newer than what is there. */
  add(sample: IMemorySample): void {
    const { at } = sample;
    if (at <= this.last) {
      return;
    }
    this.afterGap.push(this.times.length > 0 && at - this.last > GAP_SECONDS);
    const begin = this.times.length;
    this.times.push(at);
    for (const row of sample.ranks) {
      const columns = this._columnsOf(row.rank, begin);
      for (const metric of METRICS) {
        columns[metric].push(this._number(row, metric));
      }
    }
    this._fill();
    if (this.times.length > MAX_TIMES) {
      this._drop(DROPPED);
    }
  }

  /** The index of the first time that is not before `at`. */
  indexOf(at: number): number {
    return lowerBound(this.times, at);
  }

  private _appendRank(samples: IRankSamples, first: number, begin: number): void {
    const columns = this._columnsOf(samples.rank, begin);
    for (const metric of METRICS) {
      const column = columns[metric];
      const values = samples[metric];
      for (let i = first; values !== null && i < values.length; i++) {
        column.push(values[i] ?? NaN);
      }
      this._hasDevice ||= metric === 'allocated_bytes' && values !== null;
    }
  }

  private _number(row: IRankMemory, metric: Metric): number {
    const value = row[metric];
    this._hasDevice ||= metric === 'allocated_bytes' && value !== null;
    return value ?? NaN;
  }

  /** The columns of a rank, filled up to that index. */
  private _columnsOf(rank: number, length: number): Record<Metric, Values> {
    let columns = this._byRank.get(rank);
    if (!columns) {
      columns = Object.fromEntries(METRICS.map(metric => [metric, new Array<number>(length).fill(NaN)])) as Record<
        Metric,
        Values
      >;
      this._byRank.set(rank, columns);
    }
    return columns;
  }

  /** Make all columns as long as the times. */
  private _fill(): void {
    for (const columns of this._byRank.values()) {
      for (const metric of METRICS) {
        while (columns[metric].length < this.times.length) {
          columns[metric].push(NaN);
        }
      }
    }
  }

  private _drop(count: number): void {
    this.times.splice(0, count);
    this.afterGap.splice(0, count);
    this._byRank.forEach(columns => METRICS.forEach(metric => columns[metric].splice(0, count)));
  }

  private readonly _byRank = new Map<number, Record<Metric, Values>>();
  private _hasDevice = false;
}

/** The index of the first number that is not less; the numbers rise. */
export function lowerBound(numbers: readonly number[], wanted: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
