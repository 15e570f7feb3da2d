/** All groups as the page has them: the server sends what changed. */
import type { IChangesMessage, IGroup, IGroupChange, IRank, IRankChanges } from '../protocol';
import { expandRanks } from '../ranksets';

export class KnownGroups {
  /** All groups after a change, oldest first; null if a message is missing: ask for all of them. */
  apply({ seq, groups, changes, order }: IChangesMessage): IGroup[] | null {
    if (seq !== this._seq + 1 || changes.some(({ id }) => !this._groups.has(id))) {
      return null;
    }
    this._seq = seq;
    groups.forEach(group => this._groups.set(group.id, group));
    changes.forEach(change => this._groups.set(change.id, changed(this._groups.get(change.id)!, change)));
    if (order) {
      this._groups = new Map(order.map(id => [id, this._groups.get(id)!]));
    }
    return [...this._groups.values()];
  }

  private _groups = new Map<string, IGroup>();
  private _seq = 0;
}

/** A new object; what did not change is the same as before. */
function changed(group: IGroup, { fields, ranks, rank_changes: byField }: IGroupChange): IGroup {
  const whole = new Map(ranks.map(rank => [rank.rank, rank]));
  const places = new Map(byField ? expandRanks(byField.ranks).map((rank, place) => [rank, place]) : []);
  const news = group.ranks.map(rank => {
    const place = places.get(rank.rank);
    return place === undefined ? (whole.get(rank.rank) ?? rank) : changedRank(rank, byField!, place);
  });
  return { ...group, ...(fields as Partial<IGroup>), ranks: news };
}

function changedRank(rank: IRank, { alike, columns }: IRankChanges, place: number): IRank {
  const own = Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[place]]));
  return { ...rank, ...(alike as Partial<IRank>), ...(own as Partial<IRank>) };
}
