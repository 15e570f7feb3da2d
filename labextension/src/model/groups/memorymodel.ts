/**
 * The memory of every rank over the last minutes, as series to draw. One line per rank for small groups; a band (lowest,
 * median, highest) for large ones.
 */
import { ISignal, Signal } from '@lumino/signaling';
import type { IMemorySample, IRankMemory } from '../../services/protocol';

/** The number of ranks up to which each has its own line. */
export const MAX_LINES = 8;
const DEFAULT_CAPACITY = 240;

/** The metrics that can be drawn; CPU ranks only have the first. */
export type MemoryMetric = 'resident_bytes' | 'allocated_bytes' | 'reserved_bytes' | 'peak_bytes';

/** Series over common times, `null` where unknown. */
export interface IMemoryPlot {
  readonly times: number[];
  readonly series: (number | null)[][];
  /** The rank of each series; null for a band: lowest, median, highest. */
  readonly ranks: number[] | null;
}

/** The memory samples of one group. */
export class MemoryModel {
  constructor(capacity = DEFAULT_CAPACITY) {
    this._capacity = capacity;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The latest sample of a rank. */
  latest(rank: number): IRankMemory | null {
    return this._latest.get(rank) ?? null;
  }

  /** Whether the ranks have a device allocator. */
  get hasDevice(): boolean {
    return this._hasDevice;
  }

  /** What is drawn: the allocator's view on a device, the process's on CPU. */
  get metric(): MemoryMetric {
    return this.hasDevice ? 'allocated_bytes' : 'resident_bytes';
  }

  get size(): number {
    return this._samples.length;
  }

  /** The last values of one rank, oldest first. */
  history(rank: number, metric: MemoryMetric, count: number): number[] {
    const values: number[] = [];
    for (const sample of this._samples.slice(-count)) {
      const value = sample.ranks.find(r => r.rank === rank)?.[metric];
      if (value !== null && value !== undefined) {
        values.push(value);
      }
    }
    return values;
  }

  /** Add samples in any order, for example a live one before the page of past ones. */
  add(...samples: IMemorySample[]): void {
    const known = new Set(this._samples.map(s => s.at));
    const fresh = samples.filter(s => !known.has(s.at));
    if (fresh.length === 0) {
      return;
    }
    const last = this._samples[this._samples.length - 1]?.at ?? -Infinity;
    this._samples.push(...fresh);
    if (fresh[0].at < last || fresh.length > 1) {
      this._samples.sort((a, b) => a.at - b.at);
    }
    this._samples.splice(0, this._samples.length - this._capacity);
    for (const rank of this._samples[this._samples.length - 1].ranks) {
      this._latest.set(rank.rank, rank);
      this._hasDevice ||= rank.allocated_bytes !== null;
    }
    this._changed.emit();
  }

  /** Clear all samples, because the processes were replaced. */
  clear(): void {
    this._samples = [];
    this._latest.clear();
    this._hasDevice = false;
    this._changed.emit();
  }

  /** The series to draw for a group of this size. */
  plot(worldSize: number): IMemoryPlot {
    const times = this._samples.map(s => s.at);
    const metric = this.metric;
    if (worldSize <= MAX_LINES) {
      const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
      const series = ranks.map(() => new Array<number | null>(times.length).fill(null));
      this._samples.forEach((sample, i) => {
        for (const r of sample.ranks) {
          if (r.rank < worldSize) {
            series[r.rank][i] = r[metric];
          }
        }
      });
      return { times, series, ranks };
    }
    return { times, series: band(this._samples, metric), ranks: null };
  }

  dispose(): void {
    Signal.clearData(this);
  }

  private _samples: IMemorySample[] = [];
  private readonly _latest = new Map<number, IRankMemory>();
  private _hasDevice = false;
  private readonly _capacity: number;
  private readonly _changed = new Signal<this, void>(this);
}

function band(samples: IMemorySample[], metric: MemoryMetric): (number | null)[][] {
  const series: (number | null)[][] = [[], [], []];
  for (const sample of samples) {
    const values = sample.ranks
      .map(r => r[metric])
      .filter((v): v is number => v !== null)
      .sort((a, b) => a - b);
    const middle = (values.length - 1) / 2;
    series[0].push(values[0] ?? null);
    series[1].push(values.length ? (values[Math.floor(middle)] + values[Math.ceil(middle)]) / 2 : null);
    series[2].push(values[values.length - 1] ?? null);
  }
  return series;
}
