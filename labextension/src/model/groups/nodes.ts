/** The machines of a group: finding them by what users type, and completing it. */
import { includesRank } from '../format/ranks';
import type { INode } from '../../services/protocol';

/** At most this many completions are offered. */
const MAX_COMPLETIONS = 20;

/** The nodes that a query names: `node:3`, a part of a host name, or a rank's number; all for an empty one. */
export function findNodes(nodes: readonly INode[], query: string): readonly INode[] {
  const text = query.trim().toLowerCase();
  if (!text) {
    return nodes;
  }
  const rank = /^\d{1,7}$/.test(text) ? Number(text) : null;
  return nodes.filter(
    ({ node, host, ranks }) =>
      `node:${node}`.startsWith(text) ||
      (host ?? '').toLowerCase().includes(text) ||
      (rank !== null && includesRank(ranks, rank))
  );
}

/** What the last term of a rank expression may become: whole expressions, each with a host name if that is known. */
export function completeNodes(expression: string, nodes: readonly INode[]): { value: string; named: string }[] {
  const [, before, typed] = /^(.*,\s*!?|!?)(.*)$/s.exec(expression)!;
  const text = typed.trim().toLowerCase();
  const found = nodes.filter(
    ({ node, host }) => `node:${node}`.startsWith(text) || (host ?? '').toLowerCase().startsWith(text)
  );
  return found
    .slice(0, MAX_COMPLETIONS)
    .map(({ node, host }) => ({ value: `${before}node:${node}`, named: host ? `${before}${host}` : '' }));
}
