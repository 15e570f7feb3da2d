/** What ranks did: cells from their begin to their end, and the collectives that they were seen to wait in. Pure. */
import type { ExecutionState, IExecution, IRanksSeen, ISeenAt } from '../../../services/protocol';
import { expandRanks } from '../../../model/format/ranks';

/** The part of a cell on one rank. */
export interface IBand {
  readonly execution: IExecution;
  readonly begin: number;
  /** Null while it runs. */
  readonly end: number | null;
  readonly state: ExecutionState;
}

/** A rank waited in a collective; a moment if it was seen there once only. */
export interface IWait {
  readonly call: string;
  readonly execution: string;
  readonly begin: number;
  readonly end: number;
}

/** Where a rank was at a look. */
export interface ISight {
  readonly at: number;
  readonly execution: string;
  readonly place: string;
  readonly call: string | null;
}

/** The bands of each rank, by their begin. */
export function bandsOf(executions: readonly IExecution[]): Map<number, IBand[]> {
  const bands = new Map<number, IBand[]>();
  for (const execution of executions) {
    if (execution.started_at === null) {
      continue;
    }
    const states = new Map<number, ExecutionState>();
    for (const { ranks, status } of execution.statuses) {
      expandRanks(ranks).forEach(rank => states.set(rank, status));
    }
    for (const rank of expandRanks(execution.ranks)) {
      const state = states.get(rank) ?? execution.state;
      const band = { execution, begin: execution.started_at, end: endOn(execution, rank, state), state };
      const known = bands.get(rank) ?? [];
      known.push(band);
      bands.set(rank, known);
    }
  }
  bands.forEach(found => found.sort((a, b) => a.begin - b.begin));
  return bands;
}

function endOn({ started_at, ended_at, rank_seconds }: IExecution, rank: number, state: ExecutionState): number | null {
  const seconds = rank_seconds[String(rank)];
  if (seconds !== undefined) {
    return started_at! + seconds;
  }
  return state === 'running' ? null : (ended_at ?? started_at);
}

/** The band of a rank at a time, or the one nearest to it within some seconds; null if there is none. */
export function bandAt(bands: readonly IBand[], at: number, within: number, now: number): IBand | null {
  let best: IBand | null = null;
  let least = within;
  for (const band of bands) {
    const distance = Math.max(band.begin - at, at - (band.end ?? now), 0);
    if (distance <= least) {
      best = band;
      least = distance;
    }
  }
  return best;
}

/** The next band after a time, or the last one before it; null at the end. */
export function neighbour(bands: readonly IBand[], at: number, step: 1 | -1): IBand | null {
  const found = bands.filter(({ begin }) => (step > 0 ? begin > at + 1e-6 : begin < at - 1e-6));
  return (step > 0 ? found[0] : found[found.length - 1]) ?? null;
}

/** Keeps what looks saw. */
export class Sights {
  /** The last look at a rank, or null. */
  latest(rank: number): ISight | null {
    return this._latest.get(rank) ?? null;
  }

  /** What a rank waited in, by its begin. */
  waits(rank: number): readonly IWait[] {
    return this._waits.get(rank) ?? [];
  }

  /** Take a look that is newer than the others. */
  add({ at, seen }: ISeenAt): void {
    if (at <= this._lastAt) {
      return;
    }
    for (const entry of seen) {
      for (const rank of expandRanks(entry.ranks)) {
        this._addOn(rank, at, entry);
      }
    }
    this._lastAt = at;
  }

  /** Forget what was before that time. */
  drop(before: number): void {
    this._waits.forEach((waits, rank) => {
      if (waits.length > 0 && waits[0].end < before) {
        this._waits.set(
          rank,
          waits.filter(({ end }) => end >= before)
        );
      }
    });
  }

  private _addOn(rank: number, at: number, { execution_id: execution, place, call }: IRanksSeen): void {
    const before = this._latest.get(rank);
    this._latest.set(rank, { at, execution, place, call });
    if (call === null) {
      return;
    }
    let waits = this._waits.get(rank);
    if (!waits) {
      this._waits.set(rank, (waits = []));
    }
    // The same call of the same number, at two looks with none between them: it waited all the time.
    const isSame =
      before?.call === call &&
      before.execution === execution &&
      before.at === this._lastAt &&
      call.includes(', number ');
    if (isSame) {
      waits[waits.length - 1] = { ...waits[waits.length - 1], end: at };
    } else {
      waits.push({ call, execution, begin: at, end: at });
    }
  }

  private _lastAt = 0;
  private readonly _latest = new Map<number, ISight>();
  private readonly _waits = new Map<number, IWait[]>();
}
