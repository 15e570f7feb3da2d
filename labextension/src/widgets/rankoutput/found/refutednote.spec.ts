import { nullTranslator } from '@jupyterlab/translation';
import { expect, test, vi } from 'vitest';
import type { IExecution, IVerdicts } from '../../../services/protocol';
import { RefutedNote } from './refutednote';

const trans = nullTranslator.load('jupyter_dist');
const title = 'That was wrong.';
const record = { execution_id: 'e', kind: 'stuck', message: 'Rank 1 is idle.', witnesses: ['rank 0 waits'] };

/** A note on the kinds that an execution has in `line`. */
function create(...records: object[]) {
  const verdicts = vi.fn(async () => ({ verdicts: records }) as unknown as IVerdicts);
  const kindsOf = ({ line }: IExecution): string[] => line?.split(' ') ?? [];
  const note = new RefutedNote({ trans, title, verdicts, kindsOf });
  const update = (line: string | undefined, id = 'e'): void => note.update('g', { id, line } as IExecution);
  return { node: note.node, verdicts, update };
}

test('a refuted verdict is named when it is gone, with what was shown', async () => {
  const { node, verdicts, update } = create({ ...record, outcome: 'refuted' });
  update('stuck other');
  expect(verdicts).not.toHaveBeenCalled();
  update('other');
  await expect.poll(() => node.hidden).toBe(false);
  for (const words of [title, 'Rank 1 is idle.', 'rank 0 waits']) {
    expect(node.textContent).toContain(words);
  }
  expect(verdicts).toHaveBeenCalledTimes(1);
  update(undefined, 'next');
  expect(node.hidden).toBe(true);
});

test.each([
  ['was not refuted', { ...record, outcome: 'not_refuted' }],
  ['another part has shown', { ...record, kind: 'late', outcome: 'refuted' }],
  ['is of another cell', { ...record, execution_id: 'f', outcome: 'refuted' }]
])('a verdict that %s leaves nothing', async (_, found) => {
  const { node, verdicts, update } = create(found);
  update('stuck');
  update(undefined);
  await expect.poll(() => verdicts.mock.calls.length).toBe(1);
  await Promise.resolve();
  expect(node.hidden).toBe(true);
});

test('what was known of each rank is in the language of the page', async () => {
  const waits = { text: 'wartet', plural: null, values: [] };
  const witnesses_words = [[{ text: 'rank %1: %2', plural: null, values: [0, [waits]] }]];
  const { node, update } = create({ ...record, outcome: 'refuted', witnesses_words });
  update('stuck');
  update(undefined);
  await expect.poll(() => node.textContent).toContain('rank 0: wartet');
  expect(node.textContent).not.toContain('rank 0 waits');
});
