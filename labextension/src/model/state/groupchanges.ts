/** Waits for the end of a change of a group that its model shows: a resize, or a replacement of dead ranks. */
import type { IErrorBody, IGroup } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';

/** A change, as the model of a group has it. */
interface IGroupChange {
  readonly at: number;
  /** Null while it is under way. */
  readonly seconds: number | null;
  readonly error: IErrorBody | null;
}

/**
 * Resolves with the change that began at `at`, or later, when it has ended; with null if the group is gone. The agent has a
 * time limit for each.
 */
export function changeEnded<T extends IGroupChange>(
  groups: IDistGroups,
  { id }: IGroup,
  at: number,
  read: (group: IGroup) => T | null | undefined
): Promise<T | null> {
  return new Promise(resolve => {
    const look = (): void => {
      const group = groups.find(id);
      const change = group ? read(group) : null;
      if (!group || (change && change.at >= at && (change.seconds !== null || change.error))) {
        groups.changed.disconnect(look);
        resolve(change ?? null);
      }
    };
    groups.changed.connect(look);
    look();
  });
}
