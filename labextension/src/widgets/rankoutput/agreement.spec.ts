import { expect, it } from 'vitest';
import { Agreement } from './agreement';
import type { IShown } from './items/shown';

function shown(state: string, seconds: readonly (number | null)[], more: Partial<IShown> = {}): IShown {
  const perRank = seconds.map((value, rank) => ({ rank, status: value === null ? 'running' : 'ok', seconds: value }));
  return { ranks: '0-2', state, perRank, items: [], error: null, ...more } as unknown as IShown;
}

const item = (ranks: string): never => ({ key: ranks, ranks }) as never;

it('ranks agree that have printed the same and took about as long', () => {
  const agreement = new Agreement();
  expect(agreement.update(shown('running', [null, null, null]), 0)).toBe(true);
  expect(agreement.update(shown('ok', [1, 1.3, 1], { items: [item('0-2')] }), 0)).toBe(true);
});

it.each([
  ['a rank that was late', shown('ok', [0, 0, 3])],
  ['another output', shown('ok', [0, 0, 0], { items: [item('0-1'), item('2')] })],
  ['a failure', shown('error', [0, 0, 0])]
])('they do not: %s', (_, one) => expect(new Agreement().update(one, 0)).toBe(false));

it('a difference while they run counts when it has lasted', () => {
  const agreement = new Agreement();
  const late = shown('running', [0, 0, null]);
  expect(agreement.update(late, 0)).toBe(true);
  expect(agreement.update(late, 900)).toBe(true);
  expect(agreement.update(late, 1000)).toBe(false);
  expect(agreement.update(shown('running', [0, 0, null], { items: [item('0')] }), 1900)).toBe(false);
  expect(agreement.update(shown('ok', [0, 0, 0]), 2000)).toBe(true);
});
