import { expect, it } from 'vitest';
import { inWords } from '../../../services/words';
import { stateOfStack } from './stackstate';

/** A catalogue that marks what is translated. */
const marked = (text: string, ...values: unknown[]): string =>
  `<${text.replace(/%(\d)/g, (_, i) => String(values[Number(i) - 1]))}>`;
const trans = {
  __: marked,
  gettext: marked,
  ngettext: (one: string, many: string, n: number, ...values: unknown[]) => marked(n === 1 ? one : many, n, ...values)
} as never;
const words = (text: string, ...values: unknown[]): object => ({ text, plural: null, values });

it('says sentences with the sentences in them, and numbers in their form', () => {
  const cell = [words('cell [%1]', '4')];
  expect(inWords(trans, 'English', [words('line %1 of %2: %3', 2, cell, 'dist.barrier()')])).toBe(
    '<line 2 of <cell [4]>: dist.barrier()>'
  );
  expect(inWords(trans, 'English', [words('One.'), words('Two.')])).toBe('<One.> <Two.>');
  expect(inWords(trans, 'English', [{ text: '%1 rank', plural: '%1 ranks', values: [2] }])).toBe('<2 ranks>');
});

it.each([undefined, null, [], 'x', [1], [{}], [{ text: 'x' }], [{ values: [] }]])(
  'shows the English text for words that are none: %j',
  value => expect(inWords(trans, 'English', value)).toBe('English')
);

it('says which call ranks wait in', () => {
  const call = { call: 'barrier, number 1', call_words: [words('%1, number %2', 'barrier', 1)] } as never;
  expect(stateOfStack(trans, { ranks: '0-1', state: 'waits', ...(call as object) } as never)).toBe(
    '<wait in <barrier, number 1>>'
  );
});
