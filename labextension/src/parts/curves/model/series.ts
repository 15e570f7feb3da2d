/** The numbers that ranks wrote under one name, in a bounded number of points. */
import type { INamed, INamedNumbers } from './named';

/** A series has at most so many points; then each two become one. */
export const MAX_POINTS = 1024;
/** Fewer numbers of a rank are no curve. */
const MIN_VALUES = 3;

/** The numbers of one rank. Of what became one point there are the mean, the least and the greatest. */
export class Series {
  /** How many numbers there were. */
  count = 0;
  /** How many of them a point has; the last one may have fewer. */
  stride = 1;
  /** The step of the first number of each point; NaN if it had none. */
  steps: number[] = [];
  means: number[] = [];
  lows: number[] = [];
  highs: number[] = [];
  /** Whether each number had a greater step than the one before it. */
  hasSteps = true;
  /** The place of the first number that is nan or inf. */
  oddAt: number | null = null;

  add(step: number | null, value: number): void {
    if (step === null || step <= this._lastStep) {
      this.hasSteps = false;
    }
    this._lastStep = step ?? this._lastStep;
    if (!Number.isFinite(value)) {
      this.oddAt ??= this.count;
    }
    if (this.count % this.stride === 0) {
      if (this.steps.length === MAX_POINTS) {
        this._halve();
      }
      this._counts.push(0);
      this.steps.push(step ?? NaN);
      this.means.push(NaN);
      this.lows.push(NaN);
      this.highs.push(NaN);
    }
    this.count += 1;
    if (Number.isFinite(value)) {
      this._join(this.steps.length - 1, value, value, value, 1);
    }
  }

  /** Where the points are: the steps, or how many numbers came before. */
  places(bySteps: boolean): number[] {
    return bySteps ? this.steps : this.steps.map((_, i) => i * this.stride);
  }

  private _halve(): void {
    const { steps, means, lows, highs, _counts: counts } = this;
    const keep = <T>(all: T[]): T[] => all.filter((_, i) => i % 2 === 0);
    Object.assign(this, { steps: keep(steps), means: keep(means), lows: keep(lows), highs: keep(highs) });
    this._counts = keep(counts);
    this.stride *= 2;
    for (let i = 1; i < means.length; i += 2) {
      if (counts[i] > 0) {
        this._join((i - 1) / 2, means[i], lows[i], highs[i], counts[i]);
      }
    }
  }

  /** Add finite numbers to a point. */
  private _join(at: number, mean: number, low: number, high: number, count: number): void {
    const had = this._counts[at];
    this._counts[at] = had + count;
    this.means[at] = had === 0 ? mean : this.means[at] + ((mean - this.means[at]) * count) / (had + count);
    this.lows[at] = had === 0 ? low : Math.min(this.lows[at], low);
    this.highs[at] = had === 0 ? high : Math.max(this.highs[at], high);
  }

  private _counts: number[] = [];
  private _lastStep = -Infinity;
}

/** The numbers of all ranks under one name. */
export class Curve {
  constructor(readonly name: string) {}

  /** The ranks' name for the step that they count by; empty if their lines have none. */
  stepName = '';
  unit = '';
  readonly ranks = new Map<number, Series>();

  /** Whether it is worth a chart: it recurs, is measured, not counted, and changes, or is of a step. */
  get isCurve(): boolean {
    return this._isMeasured && [...this._varied].some(rank => this.ranks.get(rank)!.count >= MIN_VALUES);
  }

  /** Whether its places are steps. */
  get hasSteps(): boolean {
    return [...this.ranks.values()].every(({ hasSteps }) => hasSteps);
  }

  add(rank: number, { value, unit, isMeasured }: INamed, step: INamedNumbers['step']): void {
    let series = this.ranks.get(rank);
    if (!series) {
      series = new Series();
      this.ranks.set(rank, series);
      this._first.set(rank, value);
    }
    // "using lr 0.001" has the same number each time; nan is equal to nothing, and worth a look.
    if (step !== null || value !== this._first.get(rank)) {
      this._varied.add(rank);
    }
    this._isMeasured ||= isMeasured;
    this.unit = unit === '' ? '' : 's';
    this.stepName ||= step?.name ?? '';
    series.add(step?.value ?? null, value);
  }

  private readonly _first = new Map<number, number>();
  private _isMeasured = false;
  private readonly _varied = new Set<number>();
}
