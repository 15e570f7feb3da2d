import { nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { expect, it } from 'vitest';
import { Awaited, awaited } from '../../../model/executions/waiting';
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

it('is translated as a whole, with singular and plural', () => {
  const german: Record<string, string> = {
    'starting the ranks (%1)': 'Start der Ränge (%1)',
    'importing torch (%1)': 'Import von torch (%1)',
    'joining the process group (%1)': 'Beitritt zur Prozessgruppe (%1)',
    'rank %1': 'Rang %1',
    'ranks %1': 'Ränge %1',
    '%1 is busy': '%1 arbeitet',
    '%1 are busy': '%1 arbeiten',
    'cell [%1]': 'Zelle [%1]',
    'cell [%1] of %2': 'Zelle [%1] in %2',
    'a cell of %1': 'einer Zelle in %1',
    'another cell': 'einer anderen Zelle',
    'after %1': 'nach %1',
    'running for %1': 'läuft seit %1',
    'and %1 more': 'und %1 weitere'
  };
  const filled = (text: string, values: unknown[]): string => text.replace(/%(\d)/g, (_, i) => String(values[i - 1]));
  const bundle = {
    __: (text: string, ...values: unknown[]) => filled(german[text], values),
    _n: (one: string, many: string, count: number) =>
      filled(count === 1 ? 'und %1 weitere' : `${german[many]} Zellen`, [count])
  } as unknown as TranslationBundle;
  const said = (awaited: Awaited): string => words(awaited, bundle);
  expect(said({ kind: 'ranks', state: 'starting', since: NOW - 1 })).toBe('Start der Ränge (1.0 s)');
  expect(said({ kind: 'ranks', state: 'importing', since: NOW - 1 })).toBe('Import von torch (1.0 s)');
  expect(said({ kind: 'ranks', state: 'joining', since: NOW - 1 })).toBe('Beitritt zur Prozessgruppe (1.0 s)');
  expect(said({ kind: 'busy', ranks: '1' })).toBe('Rang 1 arbeitet');
  expect(said({ kind: 'busy', ranks: '1-2' })).toBe('Ränge 1-2 arbeiten');
  expect(said(after({ execution_count: 5 }, 1))).toBe('nach Zelle [5], und 1 weitere');
  expect(said(after({ execution_count: 5, notebook: 'b.ipynb' }, 2))).toBe(
    'nach Zelle [5] in b.ipynb, und 2 weitere Zellen'
  );
  expect(said(after({ notebook: 'b.ipynb', state: 'running', started_at: NOW - 20 }))).toBe(
    'nach einer Zelle in b.ipynb, läuft seit 20 s'
  );
  expect(said(after({}))).toBe('nach einer anderen Zelle');
});
