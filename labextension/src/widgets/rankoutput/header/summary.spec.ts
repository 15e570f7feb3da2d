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
