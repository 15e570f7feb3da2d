import { describe, expect, it } from 'vitest';
import type { INode } from '../../services/protocol';
import { completeNodes, findNodes } from './nodes';

const nodes = Array.from({ length: 128 }, (_, node) => ({
  node,
  host: `sim${String(node).padStart(3, '0')}`,
  ranks: `${node * 8}-${node * 8 + 7}`
})) as INode[];
const found = (query: string): number[] => findNodes(nodes, query).map(({ node }) => node);

describe('finding nodes', () => {
  it('takes numbers of nodes, parts of host names and ranks', () => {
    expect(found('')).toHaveLength(128);
    expect(found('node:12')).toEqual([12, 120, 121, 122, 123, 124, 125, 126, 127]);
    expect(found(' SIM099 ')).toEqual([99]);
    expect(found('1023')).toEqual([127]);
    expect(found('9999')).toEqual([]);
  });
});

describe('completing', () => {
  it('completes the last term by number or host name', () => {
    expect(completeNodes('0-3,sim01', nodes).map(({ value }) => value)).toEqual(
      [10, 11, 12, 13, 14, 15, 16, 17, 18, 19].map(node => `0-3,node:${node}`)
    );
    expect(completeNodes('!node:127', nodes)).toEqual([{ value: '!node:127', named: '!sim127' }]);
    expect(completeNodes('0-3,', nodes)[0]).toEqual({ value: '0-3,node:0', named: '0-3,sim000' });
    expect(completeNodes('all', nodes)).toEqual([]);
  });
});
