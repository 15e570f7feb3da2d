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

/** Whether ranks can be asked. */
export type Phase = 'idle' | 'busy' | 'starting' | 'parked' | 'gone';

/** What its ranks are doing, as far as it matters for questions to them. */
export function phaseOf(group: IGroup | null): Phase {
  if (!group || group.state === 'dead' || group.state === 'lost' || group.state === 'ending') {
    return 'gone';
  }
  if (isStarting(group)) {
    return 'starting';
  }
  if (isAway(group)) {
    return 'parked';
  }
  return group.running.length > 0 || group.ranks.some(({ state }) => state === 'busy') ? 'busy' : 'idle';
}
