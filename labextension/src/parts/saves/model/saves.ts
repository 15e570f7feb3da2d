/** What the page shows of saves: proposed names, and the cells to run again after a restore. Pure. */
import type { ISkipped } from '../../../services/protocol';
import { expandRanks, formatRanks } from '../../../model/format/ranks';

/** A cell that made what could not be saved. */
export interface ICellToRerun {
  readonly executionCount: number;
  readonly code: string;
  readonly ranks: string;
  readonly names: readonly string[];
}

/** A name for a save that is made now: the group's name with the date and the time, which sort by themselves. */
export function proposedName(group: string, now: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const date = [now.getFullYear(), two(now.getMonth() + 1), two(now.getDate())].join('-');
  const time = [two(now.getHours()), two(now.getMinutes()), two(now.getSeconds())].join('.');
  return `${group.replace(/[^A-Za-z0-9_.-]/g, '-').slice(0, 75)}-${date}-${time}`;
}

/** The cells that made these names, each once with all of its ranks, in the order in which they ran. */
export function cellsToRerun(skipped: readonly ISkipped[]): ICellToRerun[] {
  const found = new Map<string, { count: number; code: string; ranks: Set<number>; names: Set<string> }>();
  for (const { execution_count: count, code, ranks, name } of skipped) {
    if (count !== null && code) {
      const key = `${count} ${code}`;
      const cell = found.get(key) ?? { count, code, ranks: new Set(), names: new Set() };
      found.set(key, cell);
      expandRanks(ranks).forEach(rank => cell.ranks.add(rank));
      cell.names.add(name);
    }
  }
  return [...found.values()]
    .sort((a, b) => a.count - b.count)
    .map(({ count, code, ranks, names }) => ({
      executionCount: count,
      code,
      ranks: formatRanks(ranks),
      names: [...names]
    }));
}
