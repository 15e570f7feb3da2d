import { describe, expect, it } from 'vitest';
import type { IGroup } from '../../services/protocol';
import { sizeOfRest } from './rest';

type Node = 'joined' | 'unreachable' | 'gone';

/** A group with these dead ranks, on nodes of two ranks each if there are any. */
function group(
  size: number,
  dead: number[],
  nodes: Node[] = [],
  state = dead.length > 0 ? 'degraded' : 'ready'
): IGroup {
  return {
    state,
    world_size: size,
    ranks: Array.from({ length: size }, (_, rank) => ({ rank, state: dead.includes(rank) ? 'dead' : 'idle' })),
    nodes: nodes.map((state, node) => ({ node, state, ranks: `${2 * node}-${2 * node + 1}` }))
  } as IGroup;
}

describe('sizeOfRest', () => {
  it('is the number of ranks that live', () => {
    expect(sizeOfRest(group(4, [1, 2]))).toBe(2);
    expect(sizeOfRest(group(4, []))).toBeNull();
    expect(sizeOfRest(group(2, [0, 1], [], 'dead'))).toBeNull();
    expect(sizeOfRest(group(2, [0], [], 'restarting'))).toBeNull();
  });

  it('leaves out whole machines: one that is lost, and one with a dead rank', () => {
    expect(sizeOfRest(group(6, [], ['joined', 'unreachable', 'joined']))).toBe(4);
    expect(sizeOfRest(group(6, [0], ['joined', 'gone', 'joined']))).toBe(2);
    expect(sizeOfRest(group(4, [], ['gone', 'unreachable']))).toBeNull();
  });
});
