import { expect, it } from 'vitest';
import { nullTranslator } from '@jupyterlab/translation';
import type { IGroup, IUndoableCell } from '../../services/protocol';
import { takenBack } from './takenback';

const trans = nullTranslator.load('jupyter_dist');

function choice(states: string[], lost: unknown[]) {
  const ranks = states.map((state, rank) => ({ rank, state, process_group: 'ok' }));
  const service = { undoable: async () => ({ cells: [], lost: lost as IUndoableCell[] }) };
  return takenBack(service, { id: 'g', ranks } as unknown as IGroup, trans);
}

it('the cells since the one in which ranks died can be undone, with what stays named', async () => {
  const cost = { bytes: 1, milliseconds: 1, not_kept: ['a file'] };
  const lost = [6, 5].map(count => ({ execution_id: `e${count}`, execution_count: count, ranks: '0-2', cost }));
  const found = await choice(['idle', 'dead', 'idle'], lost);
  expect([found!.id, found!.label]).toEqual(['undo', 'Copies of the others, as before cell [5], cell [6]']);
  expect(found!.body).toEqual({ state: 'undo' });
  expect(found!.hint).toContain('Not undone: a file');
  expect((await choice(['idle', 'dead'], lost))!.body).toEqual({ state: 'undo', others: 'copy' });
});

it('nothing is offered where the cell kept no undo', async () => {
  expect(await choice(['idle', 'dead'], [])).toBeNull();
});
