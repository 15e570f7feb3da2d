/** How many ranks a group can have. Pure. */
import type { IGroup } from '../../services/protocol';
import { countRanks, expandRanks } from '../../model/format/ranks';

/** How many ranks are left without the dead and the unreachable ones; null if none is missing, or all are. */
export function sizeOfRest(group: Pick<IGroup, 'nodes' | 'ranks' | 'state' | 'world_size'>): number | null {
  const { nodes = [], ranks, state, world_size: size } = group;
  const dead = new Set(ranks.filter(({ state }) => state === 'dead').map(({ rank }) => rank));
  const lost = nodes.filter(
    node => node.state === 'unreachable' || node.state === 'gone' || expandRanks(node.ranks).some(r => dead.has(r))
  );
  const missing = nodes.length > 0 ? lost.reduce((sum, { ranks }) => sum + countRanks(ranks), 0) : dead.size;
  const takesResize = state === 'degraded' || (state === 'ready' && lost.length > 0);
  return takesResize && missing > 0 && missing < size ? size - missing : null;
}
