import { nullTranslator } from '@jupyterlab/translation';
import { expect, it } from 'vitest';
import type { GroupState, IGroup, IRank, RankState } from '../../services/protocol';
import { awaitsUserWords, exitReason, groupLight, GroupLight, groupSummary } from './statewords';
import { addGroupNews } from '../../model/format/states';

const trans = nullTranslator.load('jupyter_dist');

function group(state: GroupState, ranks: RankState[]): IGroup {
  return {
    state,
    world_size: ranks.length,
    ranks: ranks.map((rankState, rank) => ({ rank, state: rankState }) as IRank)
  } as IGroup;
}

it.each<[GroupState, RankState[], string, GroupLight]>([
  ['starting', ['importing', 'starting'], '2 ranks, starting 3.4 s', 'starting'],
  ['ready', ['idle', 'idle'], '2 ranks, idle', 'idle'],
  ['ready', ['idle', 'busy', 'busy'], '3 ranks, 2 busy', 'busy'],
  ['ready', ['unresponsive', 'busy'], '2 ranks, 1 busy, 1 not responding', 'unresponsive'],
  ['degraded', ['dead', 'idle'], '2 ranks, 1 dead', 'dead'],
  ['ready', ['idle', 'joining'], '2 ranks, 1 starting', 'joining'],
  ['parking', ['idle', 'idle'], '2 ranks, parking', 'starting'],
  ['parked', ['idle', 'idle'], '2 ranks, parked', 'away'],
  ['resuming', ['idle', 'joining'], '2 ranks, resuming', 'starting'],
  ['dead', ['dead'], '1 rank, dead', 'dead'],
  ['unresponsive', ['unresponsive', 'dead'], '2 ranks, not responding', 'unresponsive'],
  ['incompatible', [], '0 ranks, started by another version', 'unresponsive'],
  ['lost', ['idle'], '1 rank, lost', 'dead']
])('%s %j is "%s", light %s', (state, ranks, words, light) => {
  expect(groupSummary(trans, group(state, ranks), 3.4)).toBe(words);
  expect(groupLight(group(state, ranks))).toBe(light);
});

it('has the words of a part for a state', () => {
  addGroupNews({ stateWords: ({ state, name }) => (state === 'parked' && name === 'told' ? 'elsewhere' : null) });
  expect(groupSummary(trans, { ...group('parked', ['idle']), name: 'told' }, 0)).toBe('1 rank, elsewhere');
  expect(groupSummary(trans, { ...group('parked', ['idle']), name: 'other' }, 0)).toBe('1 rank, parked');
});

it('counts the ranks that wait for a user, and has words for each', () => {
  const ranks = [
    { state: 'busy', asks: true },
    { state: 'busy', stopped_at: { line: 3, file: null } },
    { state: 'busy', stopped_at: { line: 7, file: 'model.py' } }
  ] as IRank[];
  const summary = groupSummary(trans, { ...group('ready', []), world_size: 3, ranks }, 0);
  expect(summary).toBe('3 ranks, 3 busy, 1 asks for input, 2 stopped at a breakpoint');
  expect(ranks.map(rank => awaitsUserWords(trans, rank))).toEqual([
    'asks for input',
    'stopped at line 3',
    'stopped at line 7 of model.py'
  ]);
  expect(awaitsUserWords(trans, { state: 'busy' } as IRank)).toBeNull();
});

it('is green only when every rank has answered', () => {
  for (const state of ['starting', 'importing', 'joining', 'busy', 'unresponsive', 'dead'] as const) {
    expect(groupLight(group('ready', ['idle', state]))).not.toBe('idle');
  }
});

it('has words for an end without a reason', () => {
  expect(exitReason(trans, { exit: null, message: null } as IRank)).toBe('It exited for an unknown reason.');
});
