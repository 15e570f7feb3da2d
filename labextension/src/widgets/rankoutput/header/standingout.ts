/** With too many ranks for a tab each: which of them have one. */
import { countRanks, expandRanks, includesRank } from '../../../model/format/ranks';
import type { ExecutionState } from '../../../services/protocol';
import type { IShown } from '../items/shown';

/** At most this many ranks stand out. */
export const MAX_STANDING_OUT = 12;

/**
 * The ranks that differ from most: first ranks that ask for input (`asking`), then ranks that ended in another way, then
 * ranks with output that few others have. If all differ, none stands out.
 */
export function standingOut(shown: IShown, asking: readonly string[] = []): number[] {
  const { perRank, items } = shown;
  const size = perRank.length;
  const usual = usualStatus(shown);
  const other = perRank.filter(({ status }) => status !== usual).map(({ rank }) => rank);
  const found = new Set(asking.flatMap(expandRanks));
  if (other.length <= size / 2) {
    other.forEach(rank => found.add(rank));
  }
  const rare = new Set(
    items.filter(({ ranks }) => countRanks(ranks) <= MAX_STANDING_OUT).flatMap(({ ranks }) => expandRanks(ranks))
  );
  if (rare.size <= size / 2) {
    rare.forEach(rank => found.add(rank));
  }
  return [...found].filter(rank => includesRank(shown.ranks, rank)).slice(0, MAX_STANDING_OUT);
}

/** How many ranks have each status, the most common first. */
export function countStatuses({ perRank }: Pick<IShown, 'perRank'>): [ExecutionState, number][] {
  const counts = new Map<ExecutionState, number>();
  for (const { status } of perRank) {
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function usualStatus(shown: IShown): ExecutionState | undefined {
  return countStatuses(shown)[0]?.[0];
}
