import { nullTranslator } from '@jupyterlab/translation';
import { expect, test, vi } from 'vitest';
import type { ICheck, IExecution } from '../../services/protocol';
import type { IShownCell } from '../../tokens';
import { ChecksNote } from './checksnote';

const place = { file: '<ipython-input-7-0>', name: 'cell [7]', line: 12, code: 'opt.step()' };
const check: ICheck = {
  kind: 'same_batch',
  ranks: '0-1',
  message: 'Ranks 0-1 got the same batch in steps 2-4 (line 12 of cell [7]): each sample counts twice.',
  evidence: ['step 4, rank 0: digest x1', 'step 4, rank 1: digest x1'],
  advice: 'Give the DataLoader a sampler.',
  line: place,
  step: 2,
  since: 1
};

function create(showsChecks = () => true, trans = nullTranslator.load('jupyter_dist')) {
  const openLine = vi.fn();
  const note = new ChecksNote({ trans, openLine, redraw: vi.fn(), showsChecks });
  const execution = (id: string, ...checks: ICheck[]): IExecution =>
    ({ id, notebook: `${id}.ipynb`, cell_id: 'c', state: 'running', checks }) as unknown as IExecution;
  const update = (group: string, id: string, execution: IExecution | null): void =>
    note.update({ bundle: { execution_id: id, group: { id: group } }, execution, isStale: false } as IShownCell);
  return { note, openLine, execution, update };
}

test('a check has its sentence, its line and its evidence, and goes when it no longer holds', () => {
  const { note, openLine, execution, update } = create();
  update('g', 'a', execution('a', check));
  expect(note.node.querySelector('.jpd-NoteLine-text')!.textContent).toBe(check.message);
  note.node.querySelector<HTMLElement>('.jpd-NoteLine-link')!.click();
  expect(openLine).toHaveBeenCalledWith('g', 'a', place);
  expect([...note.node.querySelectorAll('li')].map(({ textContent }) => textContent)).toEqual(check.evidence);
  note.node.querySelector('details')!.open = true;
  update('g', 'a', execution('a', { ...check, message: 'Ranks 0-1 got the same batch in steps 2-8.' }));
  expect(note.node.querySelector('details')!.open).toBe(true);
  update('g', 'a', null); // it has ended
  expect(note.node.querySelector('.jpd-Check')).not.toBeNull();
  update('g', 'a', execution('a'));
  expect(note.node.querySelector('.jpd-Check')).toBeNull();
});

test('a check is folded away by a click, and stays so when its cell runs again', () => {
  const { note, execution, update } = create();
  update('g', 'b', execution('b', check));
  note.node.querySelector<HTMLElement>('.jpd-NoteLine-fold')!.click();
  expect(note.node.querySelector<HTMLElement>('.jpd-NoteLine-text')!.hidden).toBe(true);
  update('g', 'b', execution('b'));
  update('g', 'b', execution('b', check));
  expect(note.node.querySelector<HTMLElement>('.jpd-NoteLine-text')!.hidden).toBe(true);
});

test('a setting hides all', () => {
  const { note, execution, update } = create(() => false);
  update('g', 'e', execution('e', check));
  expect(note.isShown).toBe(false);
});

test('a kind that is not wanted in a notebook is not shown there again', () => {
  const { note, execution, update } = create();
  update('g', 'c', execution('c', check, { ...check, kind: 'not_zeroed' }));
  note.node.querySelector<HTMLElement>('.jpd-Check-why button')!.click();
  expect([...note.node.querySelectorAll<HTMLElement>('details')].map(({ dataset }) => dataset.kind)).toEqual([
    'not_zeroed'
  ]);
  update('g', 'd', execution('d', check));
  expect(note.node.querySelectorAll('.jpd-Check')).toHaveLength(1);
});

test("a check is in the page's language, with its link", () => {
  const gettext = (text: string, ...values: string[]): string =>
    `<${text.replace(/%(\d)/g, (_, i: string) => values[Number(i) - 1] ?? '')}>`;
  const { note, openLine, execution, update } = create(() => true, { gettext, __: gettext } as never);
  const words = (text: string, ...values: unknown[]) => [{ text, plural: null, values }];
  const line = words('line %1 of %2', 12, words('cell [%1]', '7'));
  const told: ICheck = {
    ...check,
    message_words: words('Same%1: twice.', words(' (%1)', line)),
    evidence_words: [words('step %1', 4), null],
    advice_words: words('Shuffle.')
  };
  update('g', 'f', execution('f', told));
  expect(note.node.querySelector('.jpd-NoteLine-text')!.textContent).toBe('<Same< (<line 12 of <cell [7]>>)>: twice.>');
  expect([...note.node.querySelectorAll('li, p')].map(({ textContent }) => textContent)).toEqual([
    '<step 4>',
    check.evidence[1],
    '<Shuffle.>'
  ]);
  note.node.querySelector<HTMLElement>('.jpd-NoteLine-link')!.click();
  expect(openLine).toHaveBeenCalledWith('g', 'f', place);
});
