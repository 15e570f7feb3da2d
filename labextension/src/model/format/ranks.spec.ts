import { describe, expect, it } from 'vitest';
import hostVectors from '../../../../tests/vectors/host_expressions.json';
import vectors from '../../../../tests/vectors/rank_expressions.json';
import { DistError } from '../../services/errors';
import {
  countRanks,
  expandRanks,
  formatRanks,
  includesRank,
  isRankSet,
  parseRanks,
  shortRanks,
  withNodes
} from './ranks';

describe('parseRanks', () => {
  for (const vector of vectors) {
    const { expr, world_size, ranks, canonical, error } = vector;
    const nodes = (vector.nodes ?? []).map(ranks => ({ host: null, ranks }));
    const parse = () => parseRanks(expr, { world_size, nodes });
    const name = JSON.stringify(expr.slice(0, 40));
    it(`${name} of ${world_size}: ${canonical ?? error}`, () => {
      if (ranks) {
        expect(parse()).toEqual(ranks);
        expect(formatRanks(ranks)).toBe(canonical);
        expect(expandRanks(canonical!)).toEqual(ranks);
        return;
      }
      let thrown: unknown;
      try {
        parse();
      } catch (reason) {
        thrown = reason;
      }
      expect(thrown).toBeInstanceOf(DistError);
      expect((thrown as DistError).code).toBe('bad_ranks');
      expect((thrown as DistError).message).toBe(error);
      expect((thrown as DistError).hint).not.toBe('');
    });
  }
});

describe('canonical expressions', () => {
  it('tell whether a rank is named', () => {
    expect(includesRank('0-3,7', 3)).toBe(true);
    expect(includesRank('0-3,7', 7)).toBe(true);
    expect(includesRank('0-3,7', 5)).toBe(false);
    expect(includesRank('', 0)).toBe(false);
  });

  it('are counted', () => {
    expect(countRanks('0-3,7')).toBe(5);
    expect(countRanks('')).toBe(0);
  });

  it('are cheap and empty for nonsense from a file', () => {
    const hostile = [
      '1e300',
      'Infinity',
      '-Infinity',
      '9007199254740992',
      '0-9007199254740992',
      Array(2000).fill('0-65535').join(),
      '0-9999999',
      '0-0,'.repeat(1e6),
      'x-y',
      '3-1',
      '1,0',
      '0,0',
      '0-',
      ' 0',
      '0x1'
    ];
    // Without bounds each of them takes minutes, or all memory.
    for (const text of hostile) {
      expect([text.slice(0, 20), expandRanks(text)]).toEqual([text.slice(0, 20), []]);
      expect(countRanks(text)).toBe(0);
      expect(includesRank(text, 0)).toBe(false);
      expect(isRankSet(text)).toBe(false);
    }
    expect(isRankSet(0)).toBe(false);
    expect(isRankSet('0-63,70')).toBe(true);
  });
});

describe('host names in rank expressions', () => {
  for (const { expr, hosts, nodes: expression, ranks } of hostVectors) {
    it(`${expr}: ${expression}`, () => {
      const nodes = hosts.map((host, node) => ({ host, ranks: `${2 * node}-${2 * node + 1}` }));
      expect(withNodes(expr, nodes)).toBe(expression);
      const parse = () => parseRanks(expr, { world_size: 2 * hosts.length, nodes });
      if (ranks) {
        expect(formatRanks(parse())).toBe(ranks);
      } else {
        expect(parse).toThrow('is not a rank expression');
      }
    });
  }
});

it.each([
  ['3', '3'],
  ['0-1,5-7,9,11,13-15', '0-1,5-7,9,11,13-15'],
  ['0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30', '0,2,\u2026,30'],
  ['1,9,17,25,33,41,49,57', '1,9,17,25,33,41,49,57'],
  ['0,3-4,9,11,13-17,21,23,25', '0,3-4,9,\u2026 (13)']
])('a set of ranks in a narrow column: %s', (ranks, short) => {
  expect(shortRanks(ranks)).toBe(short);
});
