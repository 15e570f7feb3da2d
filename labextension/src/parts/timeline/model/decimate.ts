/** Numbers over time as what is drawn: one column of pixels for all that fall into it. Pure. */
import { lowerBound } from './columns';
import type { IRange } from './range';

export interface IPixels {
  /** The pixel columns, rising; with few numbers, between whole ones. */
  readonly x: number[];
  readonly low: number[];
  readonly high: number[];
  /** The indexes at which a line begins again, because there is a gap before them. */
  readonly starts: number[];
}

/**
 * The least and greatest number for each column of pixels, so that no peak is lost.
 *
 * @param afterGap - for each time whether nothing is known of the time before it
 * @param width - in pixels, of the whole range
 * @param step - pixels of a column
 */
export function decimate(
  times: readonly number[],
  values: readonly number[],
  afterGap: readonly boolean[],
  { from, to }: IRange,
  width: number,
  step = 1
): IPixels {
  const pixels: IPixels = { x: [], low: [], high: [], starts: [] };
  const { x, low, high, starts } = pixels;
  const scale = width / (to - from);
  // One number on each side: lines go to the edges.
  const first = Math.max(0, lowerBound(times, from) - 1);
  const last = Math.min(times.length - 1, lowerBound(times, to));
  const isDense = last - first > width / step;
  let isNew = true;
  let column = NaN;
  for (let i = first; i <= last; i++) {
    const value = values[i];
    isNew ||= afterGap[i];
    if (Number.isNaN(value) || value === undefined) {
      isNew = true;
      continue;
    }
    const at = (times[i] - from) * scale;
    const place = isDense ? Math.round(at / step) * step : at;
    if (place === column && !isNew) {
      const end = x.length - 1;
      low[end] = Math.min(low[end], value);
      high[end] = Math.max(high[end], value);
      continue;
    }
    if (isNew) {
      starts.push(x.length);
      isNew = false;
    }
    column = place;
    x.push(place);
    low.push(value);
    high.push(value);
  }
  return pixels;
}

/** The greatest of the numbers in a range; 0 if there is none. */
export function greatest(times: readonly number[], values: readonly number[], { from, to }: IRange): number {
  const last = Math.min(values.length - 1, lowerBound(times, to));
  let found = 0;
  for (let i = Math.max(0, lowerBound(times, from) - 1); i <= last; i++) {
    found = values[i] > found ? values[i] : found;
  }
  return found;
}

/** The times without samples in a range: gaps, and what lies before the first sample. */
export function gapsIn(times: readonly number[], afterGap: readonly boolean[], { from, to }: IRange): IRange[] {
  if (times.length === 0) {
    return [{ from, to }];
  }
  const gaps = times[0] > from ? [{ from, to: Math.min(times[0], to) }] : [];
  for (let i = Math.max(1, lowerBound(times, from)); i < times.length && times[i - 1] < to; i++) {
    if (afterGap[i]) {
      gaps.push({ from: Math.max(from, times[i - 1]), to: Math.min(to, times[i]) });
    }
  }
  return gaps;
}
