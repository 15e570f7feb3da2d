import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';
import type { IComparison, ITensorDifference, IVariables } from '../../services/protocol';
import { comparisonWords, elementWords, gapWords, mostWords, statusWords } from './words';

const trans = nullTranslator.load('jupyter_dist');

const LISTED: IVariables = { ranks: '0-1', busy: '', silent: '', left_out: 0, variables: [] };

const VALUES: ITensorDifference = {
  path: '2.bias',
  what: 'values',
  ranks: '1',
  reference: '0',
  shape: [2],
  dtype: 'float32',
  max_abs: 3.20749,
  nonfinite: false,
  different: 1,
  compared: 2
};

function comparison(fields: Partial<IComparison>): IComparison {
  const none = { missing: '', busy: '', silent: '', left_out: 0, differences: [] };
  return { name: 'model', ranks: '0-1', tensors: 4, bytes: 2048, ...none, ...fields };
}

it('says why variables are not newer, and of when they are', () => {
  expect(statusWords(trans, 'idle', LISTED, '14:02')).toBe('0 variables, none differs between ranks (14:02).');
  expect(statusWords(trans, 'busy', LISTED, '14:02')).toBe('Busy: ranks run a cell. These are the variables of 14:02.');
  expect(statusWords(trans, 'busy', null, '')).toBe('Busy: ranks run a cell. Variables are listed when they are idle.');
  expect(statusWords(trans, 'gone', null, '')).toBe('The group has ended.');
});

it('says what an answer does not have', () => {
  expect(gapWords(trans, LISTED)).toEqual([]);
  expect(gapWords(trans, { ...LISTED, busy: '1', silent: '2-3', left_out: 7 })).toEqual([
    'Busy and not asked: rank 1. They answer between cells.',
    'No answer from ranks 2-3.',
    '7 more names are not listed.'
  ]);
  expect(gapWords(trans, comparison({ left_out: 1 }))[0]).toContain('1 tensor was left out: it is sharded');
});

describe('comparisonWords', () => {
  it('counts tensors, not the ranks on which one differs', () => {
    const differences = [VALUES, { ...VALUES, ranks: '2' }];
    expect(comparisonWords(trans, comparison({ differences, ranks: '0-2' }))).toBe(
      'model: 1 of 4 tensors differs, 3 are equal. Compared 2.00 kB on ranks 0-2.'
    );
    expect(comparisonWords(trans, comparison({}))).toBe('model: all 4 tensors are equal. Compared 2.00 kB on ranks 0-1.');
  });

  it('says when there is nothing to compare', () => {
    expect(comparisonWords(trans, comparison({ ranks: '0' }))).toBe('model: only rank 0 answered, so there is nothing to compare.');
    const alone = comparison({ ranks: '0', missing: '1-3' });
    expect(comparisonWords(trans, alone)).toBe('model: only on rank 0, so there is nothing to compare.');
    expect(gapWords(trans, alone)).toEqual(['Not defined on ranks 1-3.']);
    expect(comparisonWords(trans, comparison({ ranks: '' }))).toBe('model: no rank answered.');
  });
});

it('says by how much a tensor differs', () => {
  expect([elementWords(trans, VALUES), mostWords(trans, VALUES)]).toEqual(['1 of 2', '3.21']);
  expect(mostWords(trans, { ...VALUES, max_abs: 1.5e-9, nonfinite: true })).toBe('1.5e-9, nan or inf');
  expect(mostWords(trans, { ...VALUES, max_abs: null })).toBe('');
  expect(elementWords(trans, { ...VALUES, what: 'missing' })).toBe('missing');
  expect(elementWords(trans, { ...VALUES, what: 'shape' })).toBe('another shape or dtype: float32 [2]');
  expect(elementWords(trans, { ...VALUES, compared: 0 })).toBe('not compared');
});
