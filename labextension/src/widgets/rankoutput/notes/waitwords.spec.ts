import { nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { expect, it } from 'vitest';
import { Awaited, awaited } from '../../../model/executions/waiting';
import { catalogue } from '../../../services/catalogues.harness';
import type { IExecution, IGroup, RankState } from '../../../services/protocol';
import { waitWords } from './waitwords';

const trans = nullTranslator.load('jupyter_dist');
const NOW = 1000;

function words(awaited: Awaited, bundle: TranslationBundle = trans): string {
  return waitWords(bundle, awaited, 'work/own.ipynb', NOW);
}

function after(execution: Partial<IExecution>, more = 0): Awaited {
  const queued = { state: 'queued', started_at: null, execution_count: null, notebook: null };
  return { kind: 'cell', execution: { ...queued, ...execution } as IExecution, more };
}

it.each<[RankState, number, string]>([
  ['starting', 0.4, 'starting the ranks (0.4 s)'],
  ['importing', 8, 'importing torch (8.0 s)'],
  ['importing', 12, 'importing torch (12 s)'],
  ['joining', 185, 'joining the process group (3:05)'],
  // The clock of the server may be ahead.
  ['importing', -2, 'importing torch (0.0 s)']
])('ranks that are %s for %d s: "%s"', (state, seconds, text) => {
  expect(words({ kind: 'ranks', state, since: NOW - seconds })).toBe(text);
});

it('is a parked group that returns', () => {
  expect(words({ kind: 'resuming', since: NOW - 3 })).toBe('resuming the group (3.0 s)');
  expect(words({ kind: 'resuming', since: null })).toBe('resuming the group');
});

it.each([
  ['2', 'rank 2 is busy'],
  ['12', 'rank 12 is busy'],
  ['2-3', 'ranks 2-3 are busy'],
  ['0,4', 'ranks 0,4 are busy']
])('busy ranks %s: "%s"', (ranks, text) => {
  expect(words({ kind: 'busy', ranks })).toBe(text);
});

it.each<[string, Partial<IExecution>, number]>([
  [
    'after cell [5] of other.ipynb, running for 12 s',
    { state: 'running', started_at: NOW - 12, execution_count: 5, notebook: 'a/other.ipynb' },
    0
  ],
  ['after cell [5]', { execution_count: 5, notebook: 'work/own.ipynb' }, 0],
  // As another file of that name is.
  ['after cell [5] of own.ipynb', { execution_count: 5, notebook: 'own.ipynb' }, 0],
  ['after cell [0]', { execution_count: 0 }, 0],
  ['after a cell of other.ipynb', { notebook: 'other.ipynb' }, 0],
  ['after another cell', {}, 0],
  ['after another cell, and 1 more', {}, 1],
  ['after cell [5], running for 1:02, and 3 more', { state: 'running', started_at: NOW - 62, execution_count: 5 }, 3],
  // It has been sent to its ranks, which have not begun.
  ['after cell [5]', { state: 'running', execution_count: 5 }, 0]
])('a cell before it: "%s"', (text, execution, more) => {
  expect(words(after(execution, more))).toBe(text);
});

it.each<[string, Awaited]>([
  ['starting the ranks', { kind: 'ranks', state: 'starting', since: NOW - 1 }],
  ['importing torch', { kind: 'ranks', state: 'importing', since: NOW - 1 }],
  ['joining the process group', { kind: 'ranks', state: 'joining', since: NOW - 1 }],
  ['rank 2 is busy', { kind: 'busy', ranks: '2' }],
  ['after cell [5], and 1 more', after({ state: 'running', started_at: NOW - 12, execution_count: 5 }, 1)]
])('without the times, for screen readers: "%s"', (text, awaited) => {
  expect(waitWords(trans, awaited, 'work/own.ipynb', null)).toBe(text);
});

it('is nothing for a cell that has begun, if its group reports that first', () => {
  const own = { id: 'e-1', ranks: '0-1', state: 'queued', notebook: 'work/own.ipynb' } as IExecution;
  const ranks = [0, 1].map(rank => ({ rank, state: 'idle', execution_id: null }));
  const group = { state: 'ready', running: ['e-1'], queued: [], ranks } as unknown as IGroup;
  expect(awaited(own, group, new Map([['e-1', own]]))).toBeNull();
});

it('is translated as a whole', () => {
  const german = catalogue('de_DE');
  const inGerman = (awaited: Awaited): string => words(awaited, german);
  expect(inGerman({ kind: 'ranks', state: 'starting', since: NOW - 1 })).toBe('Ranks werden gestartet (1.0 s)');
  expect(inGerman({ kind: 'ranks', state: 'importing', since: NOW - 1 })).toBe('torch wird importiert (1.0 s)');
  expect(inGerman({ kind: 'busy', ranks: '1' })).toBe('Rank 1 ist beschäftigt');
  expect(inGerman({ kind: 'busy', ranks: '1-2' })).toBe('Ranks 1-2 sind beschäftigt');
  expect(inGerman(after({ execution_count: 5 }, 1))).toBe('nach Zelle [5], und 1 weitere');
  expect(inGerman(after({ execution_count: 5, notebook: 'b.ipynb' }, 2))).toBe(
    'nach Zelle [5] von b.ipynb, und 2 weitere'
  );
  expect(inGerman(after({ notebook: 'b.ipynb', state: 'running', started_at: NOW - 20 }))).toBe(
    'nach einer Zelle von b.ipynb, läuft seit 20 s'
  );
  expect(inGerman(after({}))).toBe('nach einer anderen Zelle');
});
