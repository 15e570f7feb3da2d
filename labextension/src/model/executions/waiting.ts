/** What a queued cell waits for: its group, earlier cells, or ranks that are busy with something else. */
import { FINAL_STATES, IExecution, IGroup, IRank, RankState } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { expandRanks, formatRanks, includesRank } from '../format/ranks';
import { isAway, isStarting, newsOf } from '../format/states';

/** What a cell waits for; `since` is in seconds since the epoch. */
export type Awaited =
  /** The ranks are starting: the step of the slowest one. */
  | { kind: 'ranks'; state: RankState; since: number }
  /** The tensors of the group were away, and return to the devices. */
  | { kind: 'resuming'; since: number | null }
  /** A cell before it has its ranks, and so many more. */
  | { kind: 'cell'; execution: IExecution; more: number }
  /** Ranks are busy, for an unknown reason. */
  | { kind: 'busy'; ranks: string };

/** What is known of a cell that waits. */
export type IWaiting = Pick<IExecution, 'id' | 'ranks' | 'notebook'>;

/** The list of executions is requested at most this often. */
const ASK_MS = 1000;
/** The steps of a start, slowest first. */
const COMING: readonly RankState[] = ['starting', 'importing', 'joining'];

/** What a queued execution waits for; null if unknown. */
export function awaited(execution: IWaiting, group: IGroup, known: ReadonlyMap<string, IExecution>): Awaited | null {
  const mine = group.ranks.filter(({ rank }) => includesRank(execution.ranks, rank));
  const slowest = COMING.find(state => mine.some(rank => rank.state === state));
  if (slowest && isStarting(group)) {
    return { kind: 'ranks', state: slowest, since: since(mine, slowest) };
  }
  if (isAway(group)) {
    return { kind: 'resuming', since: newsOf(news => news.returnsSince?.(group)) };
  }
  const blocking = blockingOf(execution, group, known);
  if (blocking.length > 0) {
    return { kind: 'cell', execution: blocking[0], more: blocking.length - 1 };
  }
  if (slowest) {
    return { kind: 'ranks', state: slowest, since: since(mine, slowest) };
  }
  const busy = mine.filter(rank => rank.state === 'busy' || rank.state === 'unresponsive');
  return busy.length > 0 ? { kind: 'busy', ranks: formatRanks(busy.map(({ rank }) => rank)) } : null;
}

/** Whether an earlier cell of its notebook waits for the same, or that is not known yet. */
export function isBehindOwn(execution: IWaiting, group: IGroup, known: ReadonlyMap<string, IExecution>): boolean {
  return (
    !idsBefore(execution, group).every(id => known.has(id)) ||
    blockingOf(execution, group, known).some(other => isOfNotebook(other, execution))
  );
}

function idsBefore({ id }: IWaiting, { running, queued }: IGroup): string[] {
  // Its group may report that it runs before its view does.
  return [...running.filter(other => other !== id), ...queued.slice(0, Math.max(0, queued.indexOf(id)))];
}

/** The executions before it that have ranks of it. */
function blockingOf(execution: IWaiting, group: IGroup, known: ReadonlyMap<string, IExecution>): IExecution[] {
  const own = expandRanks(execution.ranks);
  const mine = group.ranks.filter(({ rank }) => includesRank(execution.ranks, rank));
  const holds = (other: IExecution | undefined): other is IExecution => {
    if (!other || FINAL_STATES.has(other.state) || !own.some(rank => includesRank(other.ranks, rank))) {
      return false;
    }
    // A rank that finished its part is free for cells of other notebooks.
    const isShared = isOfNotebook(other, execution);
    return other.state === 'queued' || isShared || mine.some(rank => rank.execution_id === other.id);
  };
  return idsBefore(execution, group)
    .map(id => known.get(id))
    .filter(holds);
}

function isOfNotebook(other: IExecution, { notebook }: IWaiting): boolean {
  return notebook !== null && other.notebook === notebook;
}

function since(ranks: readonly IRank[], state: RankState): number {
  return Math.min(...ranks.filter(rank => rank.state === state).map(rank => rank.state_at));
}

/** Knows the cells that others wait for; requests them only when a cell waits. */
export class WaitingModel {
  constructor(
    private readonly _groups: Pick<IDistGroups, 'find'>,
    private readonly _service: Pick<IDistService, 'executions'>
  ) {}

  /** The cause for which an execution waits, as far as is known; more may be known a second later. */
  of(execution: IWaiting & Pick<IExecution, 'group'>): Awaited | null {
    const group = this._groups.find(execution.group);
    if (!group) {
      return null;
    }
    const known = this._known.get(group.id);
    const wanted = [...group.running, ...group.queued];
    const isCurrent = (id: string): boolean =>
      known?.executions.has(id) === true &&
      (known.executions.get(id)!.state === 'running' || !group.running.includes(id));
    if (!wanted.every(isCurrent)) {
      void this._ask(group.id);
    }
    return awaited(execution, group, known?.executions ?? new Map());
  }

  /** Whether an earlier cell of its notebook waits for the same. */
  isBehindOwn(execution: IWaiting & Pick<IExecution, 'group'>): boolean {
    const group = this._groups.find(execution.group);
    return group !== null && isBehindOwn(execution, group, this._known.get(group.id)?.executions ?? new Map());
  }

  private async _ask(group: string): Promise<void> {
    const now = performance.now();
    const known = this._known.get(group) ?? { askedAt: -ASK_MS, executions: new Map<string, IExecution>() };
    if (now - known.askedAt < ASK_MS) {
      return;
    }
    this._known.set(group, { ...known, askedAt: now });
    try {
      const { executions } = await this._service.executions(group);
      const open = executions.filter(({ state }) => !FINAL_STATES.has(state));
      this._known.set(group, { askedAt: now, executions: new Map(open.map(one => [one.id, one])) });
    } catch (reason) {
      console.debug('jupyter_dist: could not list the executions', reason);
    }
  }

  private readonly _known = new Map<string, { askedAt: number; executions: Map<string, IExecution> }>();
}
