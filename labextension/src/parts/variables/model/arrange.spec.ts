import { expect, it } from 'vitest';
import type { IVariable, IVariableRow } from '../../../services/protocol';
import { arrange, differingColumns, differs, isComparable } from './arrange';

function row(ranks: string, fields: Partial<IVariableRow> = {}): IVariableRow {
  return { type: 'int', kind: '', shape: '', dtype: '', device: '', bytes: null, value: '1', ranks, ...fields };
}

const tensor = (ranks: string, bytes: number, shape: string): IVariableRow =>
  row(ranks, { type: 'Tensor', kind: 'tensor', bytes, shape, value: '' });

const VARIABLES: IVariable[] = [
  { name: 'step10', rows: [row('0-1')], missing: '' },
  { name: 'step9', rows: [row('0', { value: '3' }), row('1', { value: '4' })], missing: '' },
  { name: 'batch', rows: [tensor('0', 100, '[5, 5]'), tensor('1', 4000, '[1000]')], missing: '' },
  { name: 'weights', rows: [tensor('0', 400, '[100]')], missing: '1' }
];

const names = (how: Partial<Parameters<typeof arrange>[1]>): string[] =>
  arrange(VARIABLES, { filter: '', order: 'name', isDifferingOnly: false, ...how }).map(({ name }) => name);

it('sorts by name, with numbers as numbers, or by the size where it is largest', () => {
  expect(names({})).toEqual(['batch', 'step9', 'step10', 'weights']);
  expect(names({ order: 'bytes' })).toEqual(['batch', 'weights', 'step9', 'step10']);
});

it('filters by a part of a name or a type, and by whether ranks differ', () => {
  expect(names({ filter: ' STEP' })).toEqual(['step9', 'step10']);
  expect(names({ filter: 'tensor' })).toEqual(['batch', 'weights']);
  expect(names({ isDifferingOnly: true })).toEqual(['batch', 'step9', 'weights']);
  expect(VARIABLES[0].name).toBe('step10'); // the answer itself is not sorted
});

it('says what differs: the columns, and what a rank does not have', () => {
  expect(VARIABLES.map(differs)).toEqual([false, true, true, true]);
  expect([...differingColumns(VARIABLES[1])]).toEqual(['value']);
  expect([...differingColumns(VARIABLES[2])]).toEqual(['shape', 'bytes']);
  expect([...differingColumns(VARIABLES[3])]).toEqual([]);
});

it('marks what differs inside, where no column shows it', () => {
  const fields = { type: 'dict', kind: 'container', value: 'lr=0.1' };
  const inside: IVariable = {
    name: 'c',
    rows: [row('0', { ...fields, content: 'a' }), row('1', { ...fields, content: 'b' })],
    missing: ''
  };
  expect([differs(inside), ...differingColumns(inside)]).toEqual([true, 'value']);
});

it('offers to compare what may have tensors', () => {
  expect(VARIABLES.map(isComparable)).toEqual([false, false, true, true]);
});
