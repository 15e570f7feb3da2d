import { describe, expect, it } from 'vitest';
import vectors from '../../../tests/vectors/rank_expressions.json';
import { DistError } from '../services/errors';
import {
  countRanks,
  expandRanks,
  formatRanks,
  includesRank,
  parseRanks
} from './ranks';

describe('parseRanks', () => {
  for (const { expr, world_size, ranks, canonical, error } of vectors) {
    const name = JSON.stringify(expr.slice(0, 40));
    it(`${name} of ${world_size}: ${canonical ?? error}`, () => {
      if (ranks) {
        expect(parseRanks(expr, world_size)).toEqual(ranks);
        expect(formatRanks(ranks)).toBe(canonical);
        expect(expandRanks(canonical!)).toEqual(ranks);
        return;
      }
      let thrown: unknown;
      try {
        parseRanks(expr, world_size);
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

  it('do not hurt when a foreign notebook writes nonsense', () => {
    expect(expandRanks('x-y')).toEqual([]);
    expect(expandRanks('0-99999999').length).toBe(65536);
    expect(includesRank('nonsense', 0)).toBe(false);
  });
});
