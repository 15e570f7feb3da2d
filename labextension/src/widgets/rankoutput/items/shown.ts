/** What the renderer shows, in the same form for live and saved output. */
import type {
  ExecutionState,
  ICellMemory,
  IErrorBody,
  IRanksBundle,
  IRanksStatus,
  ISavedItem
} from '../../../services/protocol';
import type { IFollowedExecution } from '../../../tokens';
import { expandRanks } from '../../../model/format/ranks';
import type { ICondensed } from '../../../model/numbers/condense';

export interface IShownItem extends ISavedItem {
  /** Stays the same for an item across updates. */
  key: string;
  /** In place of an output: one line that stands for several ranks' lines. */
  condensed?: ICondensed;
}

/** The status of one rank. */
export interface IShownRank {
  rank: number;
  status: ExecutionState;
  seconds: number | null;
  /** What the cell did to the rank's memory, if that is much. */
  memory?: ICellMemory;
}

export interface IShown {
  executionId: string;
  group: { id: string; name: string };
  /** The ranks it runs on, canonical. */
  ranks: string;
  perRank: IShownRank[];
  state: ExecutionState;
  startedAt: number | null;
  endedAt: number | null;
  error: IErrorBody | null;
  items: IShownItem[];
  /** Whether the items come from the server, not from the file. */
  isLive: boolean;
}

export function fromBundle(bundle: IRanksBundle): IShown {
  const { id, name } = bundle.group;
  return {
    executionId: bundle.execution_id,
    group: { id, name },
    ranks: bundle.ranks,
    perRank: perRank(bundle.ranks, bundle.statuses, bundle.state),
    state: bundle.state,
    startedAt: bundle.started_at ?? null,
    endedAt: bundle.ended_at ?? null,
    error: bundle.error ?? null,
    items: bundle.items.map((item, i) => ({ ...item, key: `saved-${i}` })),
    isLive: false
  };
}

/** The live view, with names that only the bundle has. */
export function fromFollowed(followed: IFollowedExecution, bundle: IRanksBundle): IShown {
  const shown = fromBundle({ ...bundle, items: [] });
  const { execution, items } = followed;
  shown.isLive = true;
  shown.items = items.map(({ id, ranks, output, elided }) => ({
    key: `live-${id}`,
    ranks,
    output,
    elided
  }));
  if (execution) {
    const { ranks, state, statuses } = execution;
    shown.ranks = ranks;
    shown.state = state;
    const memory = execution.rank_memory ?? {};
    // A status has the seconds of its slowest rank.
    const seconds = execution.rank_seconds ?? {};
    shown.perRank = perRank(ranks, statuses, state).map(one => ({
      ...one,
      seconds: one.seconds === null ? null : (seconds[one.rank] ?? one.seconds),
      memory: memory[one.rank]
    }));
    shown.startedAt = execution.started_at;
    shown.endedAt = execution.ended_at;
    shown.error = execution.error;
  }
  return shown;
}

/** How long the ranks took that have ended. */
export function knownSeconds(ranks: readonly IShownRank[]): number[] {
  return ranks.flatMap(({ seconds }) => (seconds === null ? [] : [seconds]));
}

function perRank(ranks: string, statuses: readonly IRanksStatus[], state: ExecutionState): IShownRank[] {
  const known = new Map<number, IShownRank>();
  for (const { ranks: set, status, seconds } of statuses) {
    for (const rank of expandRanks(set)) {
      known.set(rank, { rank, status, seconds: seconds ?? null });
    }
  }
  return expandRanks(ranks).map(rank => known.get(rank) ?? { rank, status: state, seconds: null });
}
