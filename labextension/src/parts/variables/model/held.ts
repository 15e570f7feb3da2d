/** What holds the memory of ranks, put together where it is the same. Pure. */
import type { IHeldMemory, IMemoryHolder, RankSet } from '../../../services/protocol';
import { groupedBy } from '../../../model/format/grouped';
import { formatBytes } from '../../../model/format/quantities';
import { formatRanks } from '../../../model/format/ranks';

export interface IHeldAlike {
  readonly ranks: RankSet;
  /** On each of these ranks; where ranks differ slightly, the largest. */
  readonly bytes: number;
  /** The largest of them: processes are never quite the same. */
  readonly residentBytes: number;
  /** Null on CPU. */
  readonly allocatedBytes: number | null;
  readonly reservedBytes: number | null;
  /** What holds memory beside variables: results and the last traceback. */
  readonly others: readonly IMemoryHolder[];
  readonly isWhole: boolean;
}

/** One entry for ranks that hold as much, and have the same beside their variables; largest first. */
export function heldAlike(memory: readonly IHeldMemory[]): IHeldAlike[] {
  const alike = groupedBy(memory, one => JSON.stringify([formatBytes(one.bytes), one.is_whole, othersOf(one)]));
  return [...alike.values()]
    .map(same => ({
      ranks: formatRanks(same.map(({ rank }) => rank)),
      bytes: Math.max(...same.map(one => one.bytes)),
      residentBytes: Math.max(...same.map(one => one.resident_bytes)),
      allocatedBytes: most(same.map(one => one.allocated_bytes)),
      reservedBytes: most(same.map(one => one.reserved_bytes)),
      others: othersOf(same[0]),
      isWhole: same[0].is_whole
    }))
    .sort((a, b) => b.bytes - a.bytes);
}

function othersOf({ holders }: IHeldMemory): IMemoryHolder[] {
  return holders.filter(({ where }) => where !== 'variable');
}

function most(sizes: readonly (number | null)[]): number | null {
  const known = sizes.filter((size): size is number => size !== null);
  return known.length > 0 ? Math.max(...known) : null;
}
