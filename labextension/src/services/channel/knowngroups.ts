/** All groups as the page has them: the server sends what changed. */
import type { IGroup, IGroupChange, IChangesMessage } from '../protocol';

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
function changed(group: IGroup, { fields, ranks }: IGroupChange): IGroup {
  const news = new Map(ranks.map(rank => [rank.rank, rank]));
  return { ...group, ...(fields as Partial<IGroup>), ranks: group.ranks.map(rank => news.get(rank.rank) ?? rank) };
}
