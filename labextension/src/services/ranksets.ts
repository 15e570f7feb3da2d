/** Sets of ranks as the server sends them: the canonical expression, such as "0-3,7". */

/** More ranks than any group has: a file that names more is damaged or malicious. */
export const MAX_RANKS = 4096;

const CANONICAL = /^([0-9]{1,7})(?:-([0-9]{1,7}))?$/;

/** Whether an untrusted value is the canonical expression of at least one rank, and of not too many. */
export function isRankSet(value: unknown): value is string {
  return typeof value === 'string' && rangesOf(value).length > 0;
}

/**
 * The ranks of a canonical expression, which needs no world size. Never
 * throws: returns none if it is not canonical, or has too many ranks.
 */
export function expandRanks(canonical: string): number[] {
  return rangesOf(canonical).flatMap(([first, last]) => span(first, last + 1));
}

/** The lowest rank of a canonical expression; null if it names none. */
export function lowestRank(canonical: string): number | null {
  return rangesOf(canonical)[0]?.[0] ?? null;
}

/** Whether a canonical expression names a rank, without building the list. */
export function includesRank(canonical: string, rank: number): boolean {
  return rangesOf(canonical).some(([first, last]) => first <= rank && rank <= last);
}

/** How many ranks a canonical expression names. */
export function countRanks(canonical: string): number {
  return rangesOf(canonical).reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

/** The ranges of a canonical expression, ascending and separate; none if it is not canonical. */
function rangesOf(canonical: string): [number, number][] {
  // Too long means too many ranks: do not even split it.
  const parts = canonical.length <= 8 * MAX_RANKS ? canonical.split(',') : [];
  const ranges: [number, number][] = [];
  let end = -1;
  let total = 0;
  for (const part of parts) {
    const match = CANONICAL.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? first);
    total += last - first + 1;
    if (!match || first <= end || last < first || total > MAX_RANKS) {
      return [];
    }
    end = last;
    ranges.push([first, last]);
  }
  return ranges;
}

/** The numbers from `first` to before `end`. */
export function span(first: number, end: number, step = 1): number[] {
  const ranks: number[] = [];
  for (let rank = first; rank < end; rank += step) {
    ranks.push(rank);
  }
  return ranks;
}
