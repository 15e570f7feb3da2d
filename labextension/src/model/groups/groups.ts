/** All groups of the server. */
import { PromiseDelegate } from '@lumino/coreutils';
import type { IGroup } from '../../services/protocol';
import { translation } from '../../services/translation';
import { inWords } from '../../services/words';
import type { IDistGroups, IDistService } from '../../tokens';
import { ChangingModel } from '../changing';
import { Clock } from '../format/clock';
import { isAway, isStarting, linesOf } from '../format/states';

/** The part of the service that this model needs. */
type GroupsSource = Pick<IDistService, 'groupsChanged' | 'connectionChanged' | 'connected'>;

export class GroupsModel extends ChangingModel implements IDistGroups {
  constructor(service: GroupsSource) {
    super();
    this._service = service;
    service.groupsChanged.connect(this._onGroups, this);
    service.connectionChanged.connect(this._onConnection, this);
  }

  readonly clock = new Clock();

  get ready(): Promise<void> {
    return this._ready.promise;
  }

  get groups(): readonly IGroup[] {
    return this._groups;
  }

  get connected(): boolean {
    return this._service.connected;
  }

  find(reference: string): IGroup | null {
    return findGroup(this._groups, reference);
  }

  dispose(): void {
    this.clock.dispose();
    super.dispose();
  }

  private _onConnection(): void {
    this._isLive = false;
    this.emitChanged();
  }

  private _onGroups(_: unknown, groups: IGroup[]): void {
    this._readClock(groups);
    this._groups = [...groups].sort(byName);
    this._ready.resolve();
    this.emitChanged();
  }

  /** A rank that changes while the page is connected has just done so; what the page has missed may be of any age. */
  private _readClock(groups: readonly IGroup[]): void {
    for (const { id, ranks } of groups) {
      const known = this._isLive ? this._groups.find(group => group.id === id) : undefined;
      for (const { rank, state_at: at } of ranks) {
        if (at > (known?.ranks[rank]?.state_at ?? Infinity)) {
          this.clock.observe(at);
        } else {
          this.clock.passed(at);
        }
      }
    }
    this._isLive = true;
  }

  private _groups: readonly IGroup[] = [];
  /** Whether all groups have come since the page was connected. */
  private _isLive = false;
  private _ready = new PromiseDelegate<void>();
  private _service: GroupsSource;
}

/** By name, so that a restart does not move a group under the pointer; "run9" comes before "run10". */
function byName(a: IGroup, b: IGroup): number {
  return a.name.localeCompare(b.name, undefined, { numeric: true }) || a.id.localeCompare(b.id);
}

/**
 * The group with that name, else with that id. Names come first, so that a
 * notebook finds a group that was started again with the same name.
 */
export function findGroup(groups: readonly IGroup[], reference: string): IGroup | null {
  return groups.find(group => group.name === reference) ?? groups.find(group => group.id === reference) ?? null;
}

/** The action that repairs a group and keeps the remaining variables. */
export function remedy(group: IGroup): 'replace' | 'reform' | 'startAgain' | null {
  if (isGone(group) && group.allocation) {
    return 'startAgain'; // its job is over, or its agent: a restart is not possible
  }
  if (group.state === 'degraded') {
    return 'replace';
  }
  // While a rank is working, the cell or the agent may still repair it.
  const isSettled = group.state === 'ready' && group.ranks.every(rank => rank.state === 'idle');
  if (isSettled && group.ranks.some(rank => rank.process_group === 'lost')) {
    return 'replace'; // its device is lost: only another process gets a new context on it
  }
  return isSettled && group.ranks.some(rank => rank.process_group !== 'ok') ? 'reform' : null;
}

/** The sentences on a group: its note, and what parts add, unless the note has it. */
export function noteLines(group: IGroup): string[] {
  const { note, note_words: words } = group;
  return [
    ...(note ? [inWords(translation(), note, words)] : []),
    ...linesOf(group).filter(sentence => !note?.includes(sentence))
  ];
}

/** Whether nothing of it runs any more, so that its name is free. */
export function isGone(group: IGroup): boolean {
  return group.state === 'dead' || group.state === 'lost';
}

/** Whether a group can take cells; one whose tensors are away is resumed by them. */
export function takesCells(group: IGroup): boolean {
  return isAway(group) || ['ready', 'degraded'].includes(group.state) || isStarting(group);
}

/** An unused name: "group", "group-2", ... */
export function freeName(groups: readonly IGroup[], base = 'group'): string {
  const taken = new Set(groups.map(group => group.name));
  let name = base;
  for (let i = 2; taken.has(name); i++) {
    name = `${base}-${i}`;
  }
  return name;
}
