/** What states of a group mean. */
import type { IGroup } from '../../services/protocol';

/** Whether its ranks start, or join in another number. */
export function isStarting(group: IGroup): boolean {
  return group.state === 'starting' || group.state === 'restarting' || group.state === 'resizing';
}
