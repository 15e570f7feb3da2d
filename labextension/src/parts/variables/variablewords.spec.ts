import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';
import type { IComparison, ITensorDifference, IVariables } from '../../services/protocol';
import { comparisonWords, elementWords, gapWords, mostWords, statusWords } from './variablewords';

const trans = nullTranslator.load('jupyter_dist');

const LISTED: IVariables = { ranks: '0-1', busy: '', silent: '', left_out: 0, variables: [], memory: [] };

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
  compared: 2,
  elements: 2,
  found: '',
  expected: ''
};

function comparison(fields: Partial<IComparison>): IComparison {
  const none = {
    missing: '',
    busy: '',
    silent: '',
    left_out: 0,
    differences: [],
    not_compared: [],
    values: 0,
    sharded: 0
  };
  return { name: 'model', outcome: 'equal', ranks: '0-1', tensors: 4, bytes: 2048, ...none, ...fields };
}

it('says why variables are not newer, and of when they are', () => {
  expect(statusWords(trans, 'idle', LISTED, '14:02')).toBe('0 variables, none differs between ranks (14:02).');
  const row = { type: 'Net', kind: 'module', shape: '', dtype: '', device: '', bytes: null, value: '', ranks: '0-1' };
  const model = { name: 'model', rows: [{ ...row, unseen: 'the numbers of 4 tensors' }], missing: '' };
  expect(statusWords(trans, 'idle', { ...LISTED, variables: [model] }, '14:02')).toBe(
    '1 variable, none differs between ranks (14:02). Of 1 other, not all was looked at, such as the numbers in tensors: Compare does that.'
  );
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
  expect(gapWords(trans, comparison({ left_out: 1 }))).toEqual(['1 more finding is not listed.']);
});

describe('comparisonWords', () => {
  it('counts tensors, not the ranks on which one differs', () => {
    const differences = [VALUES, { ...VALUES, ranks: '2' }];
    expect(comparisonWords(trans, comparison({ differences, ranks: '0-2' }))).toBe(
      'model: 1 of 4 tensors differs, 3 are equal. Compared 2.00 kB on ranks 0-2.'
    );
    expect(comparisonWords(trans, comparison({}))).toBe(
      'model: all 4 tensors are equal. Compared 2.00 kB on ranks 0-1.'
    );
  });

  it('tells what was not compared, what is divided, and other values', () => {
    const gap = { path: 'm', ranks: '0-1', why: 'it is on the meta device, without numbers' };
    const partly = comparison({ outcome: 'not_compared', tensors: 0, bytes: 0, not_compared: [gap] });
    expect(comparisonWords(trans, partly)).toBe(
      'model: nothing was compared. 1 part was not compared. Compared 0 B on ranks 0-1.'
    );
    const value: ITensorDifference = { ...VALUES, path: 'lr', what: 'value', shape: [], found: '0.2', expected: '0.1' };
    expect(
      comparisonWords(trans, comparison({ outcome: 'differs', sharded: 2, values: 7, differences: [value] }))
    ).toBe(
      'model: all 4 tensors are equal. 2 of them are divided over ranks, as their placement says. 1 other value differs. Compared 2.00 kB on ranks 0-1.'
    );
    expect(elementWords(trans, value)).toBe('0.2, not 0.1');
  });

  it('says when there is nothing to compare', () => {
    expect(comparisonWords(trans, comparison({ ranks: '0' }))).toBe(
      'model: only rank 0 answered, so there is nothing to compare.'
    );
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
  expect(mostWords(trans, { ...VALUES, max_abs: 0 })).toBe('the sign of zero alone');
  expect(elementWords(trans, { ...VALUES, what: 'missing' })).toBe('missing');
  const shape = { ...VALUES, what: 'shape' as const, found: 'float32[2]', expected: 'float32[3]' };
  expect(elementWords(trans, shape)).toBe('another shape or dtype: float32[2], not float32[3]');
  expect(elementWords(trans, { ...VALUES, different: 0, elements: 9 })).toBe('after the first 2 of 9, which are equal');
  expect(elementWords(trans, { ...VALUES, compared: 0 })).toBe('not compared');
});
