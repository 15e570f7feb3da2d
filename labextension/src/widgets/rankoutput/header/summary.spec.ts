import { nullTranslator } from '@jupyterlab/translation';
import { expect, it } from 'vitest';
import { Clock } from '../../../model/format/clock';
import type { IShown, IShownRank } from '../items/shown';
import { rankTime, summarize, timesDiffer } from './summary';

const trans = nullTranslator.load('jupyter_dist');

it.each([300, -300, 0])(
  'the time of a running cell is by the clock of the server, if that of the browser is %d s ahead',
  ahead => {
    const STARTED = 5000;
    const clock = new Clock(() => STARTED + 10 + ahead);
    clock.observe(STARTED + 10);
    const rank: IShownRank = { rank: 0, status: 'running', seconds: null };
    const shown = {
      group: { id: 'g', name: 'train' },
      perRank: [rank],
      state: 'running',
      startedAt: STARTED,
      endedAt: null
    } as unknown as IShown;
    expect(summarize(trans, shown, clock.now(), false)).toBe('train \u00b7 1 rank \u00b7 running \u00b7 10 s');
    expect(summarize(trans, shown, clock.now(), false, null, true)).toBe('1 rank \u00b7 running \u00b7 10 s');
    expect(rankTime(rank, STARTED, clock.now())).toBe('10 s');
  }
);

it.each([
  [[0.018, 0.022], false],
  [[0.3, 0.45], true],
  [[1.0, 1.15], false],
  [[1.0, 1.3], true],
  [[60.0, 61.1], true],
  [[60.0, 60.4], false],
  [[5], false],
  [[null, null], false],
  [[], false]
] as [(number | null)[], boolean][])('ranks that took %j seconds have their times: %s', (seconds, expected) => {
  const ranks = seconds.map((one, rank): IShownRank => ({ rank, status: 'ok', seconds: one }));
  expect(timesDiffer(ranks)).toBe(expected);
});

it.each([
  [[0.1, 0.1, 2.0, 0.1], 'ok', '4 ranks \u00b7 ok \u00b7 rank 2 took 2.0 s'],
  [[0.1, 2.5, 2.0, 0.1], 'ok', '4 ranks \u00b7 ok \u00b7 ranks 1-2 took 2.5 s'],
  [[0.1, 0.2, 0.3, 0.1], 'ok', '4 ranks \u00b7 ok \u00b7 2.0 s'],
  [[0.1, 2.0, 2.0, 2.0, 2.0, 2.0], 'ok', '6 ranks \u00b7 ok \u00b7 2.0 s'],
  [[0.1, 0.1, 2.0, 0.1], 'error', '4 ranks \u00b7 error \u00b7 2.0 s']
])('names the few ranks that were late in a cell that went well: %j %s', (seconds, state, words) => {
  const perRank = seconds.map((one, rank) => ({ rank, status: state, seconds: one }));
  const shown = { group: { id: 'g', name: 'train' }, perRank, state, startedAt: 1, endedAt: 3 } as unknown as IShown;
  expect(summarize(trans, shown, null, false, null, true)).toBe(words);
});
