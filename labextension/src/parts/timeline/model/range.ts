/** The part of the time axis that is seen: zoom, pan, and following what is live. Pure. */

/** In seconds since the epoch. */
export interface IRange {
  readonly from: number;
  readonly to: number;
}

/** What the user chose: all, the last seconds, or a fixed part. */
export interface IChoice {
  /** Null: all. */
  readonly seconds: number | null;
  /** Its end; null: now. */
  readonly to: number | null;
}

export const ALL: IChoice = { seconds: null, to: null };
const MIN_SECONDS = 2;

/** The range that is seen. */
export function rangeOf({ seconds, to }: IChoice, full: IRange): IRange {
  if (seconds === null) {
    return full;
  }
  const end = Math.min(to ?? full.to, full.to);
  const from = Math.max(full.from, end - seconds);
  return { from, to: Math.min(full.to, from + seconds) };
}

/** The choice that shows a range: a range that ends now moves on with time, and nearly all becomes all. */
export function choose(range: IRange, full: IRange): IChoice {
  const seconds = Math.max(MIN_SECONDS, range.to - range.from);
  if (seconds >= (full.to - full.from) * 0.999) {
    return ALL;
  }
  const from = Math.min(Math.max(range.from, full.from), full.to - seconds);
  const to = from + seconds;
  return { seconds, to: full.to - to < seconds / 200 ? null : to };
}

/** Zoom by a factor (below 1: closer), keeping the time `at` where it is. */
export function zoom(choice: IChoice, full: IRange, factor: number, at: number): IChoice {
  const { from, to } = rangeOf(choice, full);
  const seconds = Math.max(MIN_SECONDS, (to - from) * factor);
  const share = (at - from) / (to - from);
  const begin = at - share * seconds;
  return choose({ from: begin, to: begin + seconds }, full);
}

/** Move by a share of what is seen. */
export function pan(choice: IChoice, full: IRange, share: number): IChoice {
  const { from, to } = rangeOf(choice, full);
  const by = (to - from) * share;
  const begin = Math.min(Math.max(from + by, full.from), full.to - (to - from));
  return choose({ from: begin, to: begin + to - from }, full);
}
