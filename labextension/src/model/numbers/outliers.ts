/**
 * Finds the numbers that do not belong to the others: the generalized ESD test
 * (Rosner 1983), which allows several. It is exact for one outlier among
 * normal values; a number must be one on each scale that noise may have. Pure.
 */

/** Of lines whose numbers are noise, about this share has an outlier. */
export const FALSE_ALARMS = 0.0005;
/** With two values, it cannot be decided which of them is the odd one. */
const MIN_VALUES = 3;
/** At most this share of the values, and so many, may be outliers. */
const MAX_SHARE = 0.25;
const MAX_OUTLIERS = 16;
/** Student's distribution is taken as no closer to the normal one than this, which makes fewer alarms. */
const MAX_FREEDOM = 100;

/** How much ranks usually differ, by factors: counts as much as one more value. */
const USUAL = { deviation: 0.1, freedom: 1 };

export interface ISample {
  values: readonly number[];
  /** The unit of the last figure that was printed: values are rounded to it. */
  resolution: number;
  /** They count something. */
  areWhole: boolean;
}

/** What is known of the values on a scale: a deviation that is as good as one estimated from that many values more. */
interface IScale {
  resolution: number;
  deviation: number;
  freedom: number;
}

/** Whether each number is an outlier. */
export function outliersOf({ values, resolution, areWhole }: ISample, falseAlarms = FALSE_ALARMS): boolean[] {
  if (values.length < MIN_VALUES || !values.every(Number.isFinite)) {
    return values.map(() => false);
  }
  const scales = [distant(values, falseAlarms, { resolution, deviation: 0, freedom: 0 })];
  if (!scales[0].includes(true)) {
    return scales[0];
  }
  const middle = [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
  const isCount = areWhole && values.every(value => value >= 0);
  const offset = isCount ? resolution / 2 : 0;
  if (values.every(value => value + offset > 0) || values.every(value => value < 0)) {
    // Losses and durations vary by factors.
    const logs = values.map(value => Math.log(Math.abs(value) + offset));
    const relative = resolution / (Math.abs(middle) + offset);
    scales.push(distant(logs, falseAlarms, { resolution: relative, ...USUAL }));
  }
  if (isCount) {
    // Counts of events vary by their root at least, however equal the others are by chance.
    const roots = values.map(value => 2 * Math.sqrt(value + 3 / 8));
    const root = 2 * Math.sqrt(middle + 3 / 8);
    scales.push(roots.map(value => values.length * twoTails(Math.abs(value - root), MAX_FREEDOM) < falseAlarms));
  }
  return values.map((_, i) => scales.every(scale => scale[i]));
}

/** Whether each value is too far from the others for normal values. */
function distant(values: readonly number[], falseAlarms: number, scale: IScale): boolean[] {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const sums = new Sums(order.map(i => values[i]));
  const most = Math.min(Math.max(1, Math.floor(values.length * MAX_SHARE)), MAX_OUTLIERS);
  let [first, end] = [0, order.length];
  let outliers: number[] = [];
  for (let removed = 1; removed <= most; removed++) {
    const num = end - first;
    const { mean } = sums.of(first, end);
    const isLast = values[order[end - 1]] - mean >= mean - values[order[first]];
    const farthest = values[order[isLast ? --end : first++]];
    const rest = sums.of(first, end);
    const freedom = num - 2 + scale.freedom;
    // What is rounded to the same has the variance of rounding.
    const squares = rest.squares + scale.freedom * scale.deviation ** 2;
    const variance = (squares / freedom + scale.resolution ** 2 / 12) * (num / (num - 1));
    const p = num * twoTails(Math.abs(farthest - rest.mean) / Math.sqrt(variance), freedom);
    outliers = p < falseAlarms ? [...order.slice(0, first), ...order.slice(end)] : outliers;
  }
  const found = new Set(outliers);
  return values.map((_, i) => found.has(i));
}

/**
 * Means and squares of deviations in ranges of sorted values. They are summed
 * from the middle, so that an outlier outside the range costs no precision.
 */
class Sums {
  constructor(sorted: readonly number[]) {
    this._middle = Math.floor(sorted.length / 2);
    this._center = sorted[this._middle];
    const deviations = sorted.map(value => value - this._center);
    this._above = cumulated(deviations.slice(this._middle));
    this._below = cumulated(deviations.slice(0, this._middle).reverse());
  }

  of(first: number, end: number): { mean: number; squares: number } {
    const [above, below] = [this._above[end - this._middle], this._below[this._middle - first]];
    const shift = (above.sum + below.sum) / (end - first);
    const squares = above.squares + below.squares - shift ** 2 * (end - first);
    return { mean: this._center + shift, squares: Math.max(0, squares) };
  }

  private readonly _middle: number;
  private readonly _center: number;
  private readonly _above: ISum[];
  private readonly _below: ISum[];
}

interface ISum {
  sum: number;
  squares: number;
}

/** The sums of the first 0, 1, 2, ... values. */
function cumulated(values: readonly number[]): ISum[] {
  const sums: ISum[] = [{ sum: 0, squares: 0 }];
  values.forEach((value, i) => sums.push({ sum: sums[i].sum + value, squares: sums[i].squares + value ** 2 }));
  return sums;
}

/** How probable a value of Student's distribution is that is as far from 0, on either side (Abramowitz and Stegun 26.7). */
function twoTails(t: number, freedom: number): number {
  const nu = Math.min(freedom, MAX_FREEDOM);
  const angle = Math.atan(t / Math.sqrt(nu));
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const isEven = nu % 2 === 0;
  let term = isEven ? 1 : cosine;
  let sum = nu === 1 ? 0 : term;
  for (let i = isEven ? 2 : 3; i < nu; i += 2) {
    term *= ((i - 1) / i) * cosine ** 2;
    sum += term;
  }
  return 1 - (isEven ? sine * sum : (2 / Math.PI) * (angle + sine * sum));
}
