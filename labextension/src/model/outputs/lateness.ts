/** Ranks that took much longer than others in a cell; jupyter_dist/client/bundles/lateness.py finds the same. */
import type { IExecution, IRanksStatus } from '../../services/protocol';
import { groupedBy } from '../format/grouped';
import { expandRanks, formatRanks } from '../format/ranks';

const LATE_SECONDS = 1;

/** Whether the slowest took longer than the fastest by a second, and by a fifth of its time. */
export function isLate(seconds: readonly number[]): boolean {
  const slowest = Math.max(...seconds);
  const range = slowest - Math.min(...seconds);
  return range >= LATE_SECONDS && range >= slowest / 5;
}

/** The statuses of an execution, with late ranks apart: a status has the time of its slowest rank. */
export function statusesApart({ statuses, rank_seconds: seconds }: IExecution): IRanksStatus[] {
  const all = Object.values(seconds ?? {});
  if (!isLate(all)) {
    return statuses;
  }
  const fastest = Math.min(...all);
  return statuses.flatMap(status => {
    const parts = groupedBy(expandRanks(status.ranks), rank => isLate([fastest, seconds[rank] ?? fastest]));
    return [...parts.values()].map(ranks => ({
      ...status,
      ranks: formatRanks(ranks),
      seconds: status.seconds === null ? null : Math.max(...ranks.map(rank => seconds[rank] ?? fastest))
    }));
  });
}
