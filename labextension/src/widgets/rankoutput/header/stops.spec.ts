import { nullTranslator } from '@jupyterlab/translation';
import { expect, it } from 'vitest';
import type { IDebuggerStop, IGroup, IRank } from '../../../services/protocol';
import { summarize } from './summary';
import type { IShown } from '../items/shown';
import { stopOf, stopWords } from './stops';

const trans = nullTranslator.load('jupyter_dist');

/** A cell on ranks that are stopped there; null: the rank runs. */
function summaryOf(...stops: (IDebuggerStop | null)[]): string {
  const group = {
    ranks: stops.map((stop, rank) => ({ rank, execution_id: 'e', stopped_at: stop ?? undefined }) as IRank)
  } as IGroup;
  const shown = {
    group: { id: 'g', name: '' },
    perRank: stops.map((_, rank) => ({ rank, status: 'running', seconds: null })),
    state: 'running',
    startedAt: 5,
    endedAt: null
  } as unknown as IShown;
  const stop = stopOf(group, 'e');
  return summarize(trans, shown, 14, false, stop && { words: stopWords(trans, stop), isState: stop.isWhole });
}

it('is in place of "running" where all ranks are stopped, and beside it where one is', () => {
  const at = (line: number, file: string | null = null): IDebuggerStop => ({ line, file });
  expect(summaryOf(null, null)).toBe('2 ranks \u00b7 running \u00b7 9.0 s');
  expect(summaryOf(at(3), at(3))).toBe('2 ranks \u00b7 stopped at a breakpoint, line 3 \u00b7 9.0 s');
  expect(summaryOf(at(3), at(4))).toBe('2 ranks \u00b7 stopped at a breakpoint \u00b7 9.0 s');
  expect(summaryOf(at(3, 'a.py'))).toBe('1 rank \u00b7 stopped at a breakpoint \u00b7 9.0 s');
  expect(summaryOf(null, at(3))).toBe('2 ranks \u00b7 running \u00b7 rank 1 is stopped at a breakpoint \u00b7 9.0 s');
});

it('is that of the cell on these ranks', () => {
  const other = { rank: 0, execution_id: 'other', stopped_at: { line: 1, file: null } } as IRank;
  expect(stopOf({ ranks: [other] } as IGroup, 'e')).toBeNull();
  expect(stopOf(null, 'e')).toBeNull();
});
