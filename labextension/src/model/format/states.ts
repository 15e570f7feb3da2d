/** What states of a group mean. */
import type { IGroup } from '../../services/protocol';

/** Whether its ranks start, or join in another number. */
export function isStarting(group: IGroup): boolean {
  return group.state === 'starting' || group.state === 'restarting' || group.state === 'resizing';
}

/** Whether its ranks live, and their tensors cannot be used: it is parked, or on its way there or back. */
export function isAway(group: IGroup): boolean {
  return group.state === 'parking' || group.state === 'parked' || group.state === 'resuming';
}
