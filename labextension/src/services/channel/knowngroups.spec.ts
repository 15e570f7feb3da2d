import { expect, test } from 'vitest';
import { KnownGroups } from './knowngroups';
import type { IGroup } from '../protocol';

const group = (id: string, states: string[]): IGroup =>
  ({ id, name: id, state: 'ready', ranks: states.map((state, rank) => ({ rank, state })) }) as unknown as IGroup;
const message = (seq: number, more: object) => ({ type: 'changes' as const, seq, groups: [], changes: [], ...more });

test('changes are applied to groups and ranks, and what did not change stays the same object', () => {
  const known = new KnownGroups();
  const [a] = known.apply(message(1, { groups: [group('a', ['idle', 'idle'])], order: ['a'] }))!;
  const rank = { ...a.ranks[1], state: 'busy' };
  const [b] = known.apply(message(2, { changes: [{ id: 'a', fields: { note: 'so' }, ranks: [rank] }] }))!;
  expect(b).toEqual({ ...a, note: 'so', ranks: [a.ranks[0], rank] });
  expect(b.ranks[0]).toBe(a.ranks[0]);
});

test('changes field by field are applied to their ranks, beside ranks that come whole', () => {
  const known = new KnownGroups();
  const [a] = known.apply(message(1, { groups: [group('a', ['idle', 'idle', 'idle', 'idle'])], order: ['a'] }))!;
  const dead = { ...a.ranks[3], state: 'dead', exit: { code: 1 } };
  const byField = { ranks: '0,2', alike: { state: 'busy' }, columns: { state_at: [5, 6] } };
  const [b] = known.apply(message(2, { changes: [{ id: 'a', fields: {}, ranks: [dead], rank_changes: byField }] }))!;
  expect(b.ranks).toEqual([
    { rank: 0, state: 'busy', state_at: 5 },
    a.ranks[1],
    { rank: 2, state: 'busy', state_at: 6 },
    dead
  ]);
  expect(b.ranks[1]).toBe(a.ranks[1]);
});

test('groups come and go in order', () => {
  const known = new KnownGroups();
  known.apply(message(1, { groups: [group('a', []), group('b', [])], order: ['a', 'b'] }));
  const groups = known.apply(message(2, { groups: [group('c', [])], order: ['b', 'c'] }))!;
  expect(groups.map(({ id }) => id)).toEqual(['b', 'c']);
});

test('a page that missed a message asks again', () => {
  const known = new KnownGroups();
  known.apply(message(1, { groups: [group('a', [])], order: ['a'] }));
  expect(known.apply(message(3, { changes: [{ id: 'a', fields: { state: 'dead' }, ranks: [] }] }))).toBeNull();
  expect(known.apply(message(2, { changes: [{ id: 'x', fields: {}, ranks: [] }] }))).toBeNull();
  expect(known.apply(message(2, { changes: [{ id: 'a', fields: { state: 'dead' }, ranks: [] }] }))![0].state).toBe(
    'dead'
  );
});
