import { expect, test } from 'vitest';
import type { ICompared } from '../../services/protocol';
import { comparedAnswer } from './comparedwords';

const words = (text: string, ...values: unknown[]) => [{ text, plural: null, values }];

test("what differs in a model is in the page's language", () => {
  const gettext = (text: string, ...values: unknown[]): string =>
    `<${text.replace(/%(\d)/g, (_, i: string) => String(values[Number(i) - 1]))}>`;
  const trans = { gettext, __: gettext, _n: gettext, ngettext: gettext } as never;
  const compared = {
    name: 'model',
    ranks: '0-1',
    alike: 3,
    differ: 1,
    sharded: 0,
    differences: [
      {
        what: 'parameter',
        name: '0.bias',
        title_words: words('parameter %1', '0.bias'),
        values: ['rank 0: x1', 'rank 1: x2'],
        values_words: [words('%1: %2', words('rank %1', '0'), 'x1'), null]
      }
    ],
    not_asked: ['rank 2: it runs a cell'],
    not_asked_words: [words('%1: %2', words('rank %1', '2'), words('it runs a cell'))]
  } as unknown as ICompared;
  const answer = comparedAnswer(trans, compared);
  expect(answer.rows.map(({ title, values }) => [title, ...values])).toEqual([
    ['<parameter 0.bias>', '<<rank 0>: x1>', 'rank 1: x2']
  ]);
  expect(answer.notes).toEqual(['<Not compared: <<rank 2>: <it runs a cell>>>']);
});
