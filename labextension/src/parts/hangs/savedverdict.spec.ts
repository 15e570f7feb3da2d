import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';
import { readVerdict } from './savedverdict';
import { verdictText } from './verdictwords';

describe('readVerdict', () => {
  const part = { ranks: '0', state: 'waits', place: 'line 2 of cell [4]', call: 'barrier, number 1' };
  const verdict = { kind: 'cannot_end', reason: 'missing', message: 'm', since: 5, waiting: [part], needed: [] };

  it('keeps a sound verdict in English', () => {
    const needed = { ...part, ranks: '1', place: null };
    const written = { ...verdict, needed: [{ ...needed, place_words: [{}] }], could_join: '1' };
    expect(readVerdict({ verdict: written })).toEqual({ ...verdict, needed: [needed] });
    expect(readVerdict({})).toBeNull();
    expect(readVerdict(null)).toBeNull();
  });

  const forged: [string, object][] = [
    ['another kind', { kind: 'ends' }],
    ['a reason that no sentence is for', { reason: 'toString' }],
    ['no time', { since: null }],
    ['no ranks', { waiting: [{ ...part, ranks: 'all' }] }],
    ['a rank that does what no rank does', { needed: [{ ...part, state: 'constructor' }] }],
    ['a call that is no text', { waiting: [{ ...part, call: {} }] }],
    ['parts that are none', { waiting: null }]
  ];
  it.each(forged)('has no verdict with %s', (_, more) => {
    expect(readVerdict({ verdict: { ...verdict, ...more } })).toBeNull();
  });
});

it('says all in sentences', () => {
  const waiting = [{ ranks: '0', state: 'waits' as const, place: 'line 2 of cell [4]', call: 'barrier, number 1' }];
  const needed = [{ ranks: '1', state: 'idle' as const, place: 'since cell [4]', call: null }];
  const verdict = { kind: 'cannot_end' as const, reason: 'missing' as const, message: '', since: 5, waiting, needed };
  expect(verdictText(nullTranslator.load('jupyter_dist'), verdict)).toBe(
    'Cannot end: rank 0 called what rank 1 did not call and, being idle, will not. ' +
      'Rank 0 waits in barrier, number 1 \u00b7 line 2 of cell [4]; rank 1 idle \u00b7 since cell [4]'
  );
});
