import { expect, it } from 'vitest';
import type { IStartOptionRow } from '../../services/protocol';
import { isWrong, requestedOptions, shownDefault, shownValue } from './startoptions';

const NAME = 'One';
const row = (kind: IStartOptionRow['kind'], changes: Partial<IStartOptionRow> = {}): IStartOptionRow => ({
  name: 'one',
  part: 'uptime',
  label: NAME,
  help: 'What it is.',
  kind,
  choices: [],
  minimum: null,
  maximum: null,
  max_length: null,
  default: null,
  ...changes
});
const kept = row('integer', { minimum: 1, maximum: 100, default: 2 });
const seconds = row('number', { minimum: 0, default: 0 });

it.each([
  [kept, '3', 3],
  [kept, ' 100 ', 100],
  [kept, '0', null],
  [kept, '101', null],
  [kept, '2.5', null],
  [kept, 'x', null],
  [kept, '2', 2], // what was typed is sent, also if the server has it
  [kept, '', undefined],
  [seconds, '0.5', 0.5],
  [seconds, '-1', null],
  [seconds, 'Infinity', null],
  [row('number'), '-7', -7],
  [row('number'), '?', null],
  [row('words', { max_length: 4 }), 'a, bb,,c ', ['a', 'bb', 'c']],
  [row('words', { max_length: 4 }), 'a, too long', null],
  [row('text', { max_length: 4 }), ' a b', 'a b'],
  [row('text', { max_length: 4 }), 'a b c', null],
  [row('text', { max_length: 2 }), '\u{1f642}\u{1f642}', '\u{1f642}\u{1f642}'], // two characters, as the server counts
  [row('words', { max_length: 1 }), '\u{1f642}', ['\u{1f642}']],
  [row('flag', { default: true }), 'false', false],
  [row('flag', { default: true }), 'true', undefined], // switched off, and on again
  [row('flag', { default: false }), 'true', true]
])('%j reads %j as %j; null: it is wrong', (one, typed, expected) => {
  expect(isWrong(one, { one: typed })).toBe(expected === null);
  if (expected !== null) {
    expect(requestedOptions([one], { one: typed })).toEqual(expected === undefined ? {} : { one: expected });
  }
});

it.each([
  [kept, 5, '5'],
  [row('words'), ['a', 'b'], 'a, b'],
  [row('flag', { default: true }), false, 'false'],
  [seconds, 0, '0']
])('what a preset has for %j is shown and sent: %j', (one, value, shown) => {
  expect(shownValue(one, { one: value })).toBe(shown);
  expect(requestedOptions([one], { one: value })).toEqual({ one: value });
});

it('nothing is sent that was not given, and a field shows the default of the server beside it', () => {
  const rows = [kept, row('words', { name: 'two', default: ['a', 'b'] }), row('flag', { name: 'on', default: true })];
  expect(requestedOptions(rows, {})).toEqual({});
  expect(rows.map(each => shownValue(each, {}))).toEqual(['', '', 'true']);
  expect(rows.map(shownDefault)).toEqual(['2', 'a, b', 'true']);
  expect(shownDefault(row('text'))).toBe('');
});

it('what a preset has for an option without a row is sent as it is', () => {
  expect(requestedOptions([kept], { one: '3', notebook: 'a/b.ipynb' })).toEqual({ one: 3, notebook: 'a/b.ipynb' });
});
