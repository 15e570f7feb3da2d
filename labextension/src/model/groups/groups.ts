/** All groups of the server: what every view of them shows. */
import { PromiseDelegate } from '@lumino/coreutils';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { ChangingModel } from '../changing';

/** What of the server this model needs. */
type GroupsSource = Pick<
  IDistService,
  'groupsChanged' | 'connectionChanged' | 'connected'
>;

export class GroupsModel extends ChangingModel implements IDistGroups {
  constructor(service: GroupsSource) {
    super();
    this._service = service;
    service.groupsChanged.connect(this._onGroups, this);
    service.connectionChanged.connect(this.emitChanged, this);
  }

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

  private _onGroups(_: unknown, groups: IGroup[]): void {
    this._groups = [...groups].sort(byName);
    this._ready.resolve();
    this.emitChanged();
  }

  private _groups: readonly IGroup[] = [];
  private _ready = new PromiseDelegate<void>();
  private _service: GroupsSource;
}

/** A restart must not move a group under the pointer; "run9" comes before "run10". */
function byName(a: IGroup, b: IGroup): number {
  return a.name.localeCompare(b.name, undefined, { numeric: true }) || a.id.localeCompare(b.id);
}

/**
 * The group of that name, else of that id: a name outlives the group, so
 * that a notebook finds the group that was started again under it.
 */
export function findGroup(
  groups: readonly IGroup[],
  reference: string
): IGroup | null {
  return (
    groups.find(group => group.name === reference) ??
    groups.find(group => group.id === reference) ??
    null
  );
}

/** What would put a group right that is not, with the variables that are left. */
export function remedy(group: IGroup): 'replace' | 'reform' | null {
  if (group.state === 'degraded') {
    return 'replace';
  }
  // While a rank is at work it may still be put right: by the cell, or by its agent.
  const isSettled = group.state === 'ready' && group.ranks.every(rank => rank.state === 'idle');
  return isSettled && group.ranks.some(rank => rank.process_group !== 'ok') ? 'reform' : null;
}

/** Whether a group can take cells. */
export function takesCells(group: IGroup): boolean {
  return ['ready', 'degraded', 'starting', 'restarting'].includes(group.state);
}
