import { nullTranslator } from '@jupyterlab/translation';
import { expect, test, vi } from 'vitest';
import type { IExecution, IRanksBundle } from '../../services/protocol';
import type { IShownCell } from '../../tokens';
import { HangNote } from './hangnote';

const trans = nullTranslator.load('jupyter_dist');
const part = { ranks: '0,2', state: 'waits', place: 'line 2 of cell [4]', call: 'barrier, number 1' };
const needed = [{ ranks: '1', state: 'idle', place: null, call: null }];
const verdict = { kind: 'cannot_end', reason: 'missing', message: 'm', since: 5, waiting: [part], needed };
const bundle = { execution_id: 'e', group: { id: 'g', name: 'train' }, state: 'running' } as IRanksBundle;
const running = { id: 'e', state: 'running', verdict };

function create(hasServer = true) {
  const record = { execution_id: 'e', kind: 'cannot_end', message: 'm', outcome: 'refuted', witnesses: [] };
  const actions = {
    interrupt: vi.fn(),
    extend: vi.fn(async () => undefined),
    stacks: vi.fn(async () => []),
    verdicts: vi.fn(async () => ({ verdicts: [record] }) as never)
  };
  const note = new HangNote(trans, hasServer ? actions : null);
  const update = (execution: object | null, more: Partial<IShownCell> = {}): void => {
    const shown = { bundle, unchecked: null, isTrusted: true, isStale: false, isHung: false, now: 20 };
    note.update({ ...shown, execution: execution as IExecution | null, ...more });
  };
  return { note, actions, update };
}

test('it is shown while the ranks wait, interrupts those, and leaves a line', () => {
  const { note, actions, update } = create();
  update({ ...running, verdict: null });
  expect(note.isShown).toBe(false);
  update(running);
  expect([note.isShown, note.explainsHang, note.coversRanks]).toEqual([true, true, true]);
  expect(note.node.textContent).toContain('wait in barrier, number 1');
  note.node.querySelector<HTMLElement>('.jpd-Verdict-interrupt')!.click();
  expect(actions.interrupt).toHaveBeenCalledWith('g', '0,2');
  update({ ...running, state: 'ok', verdict: null, ended_at: 12 });
  expect(note.isShown).toBe(false);
  expect(note.node.querySelector('.jpd-Verdict-past')!.textContent).toContain('For 7');
});

test('nothing is said while the connection is lost', () => {
  const { note, update } = create();
  update(running, { isStale: true });
  expect(note.isShown).toBe(false);
  expect(note.node.querySelector<HTMLElement>('.jpd-Verdict')!.hidden).toBe(true);
});

test('a refuted verdict is named', async () => {
  const { note, update } = create();
  update(running);
  update({ ...running, verdict: null });
  const refuted = note.node.querySelector<HTMLElement>('.jpd-Refuted')!;
  await expect.poll(() => refuted.hidden).toBe(false);
  expect(refuted.textContent).toContain('That was wrong');
});

test('without a server it is what the kernel has put into the output, without buttons', () => {
  const { note, update } = create(false);
  update(null, { unchecked: { verdict } });
  expect(note.isShown).toBe(true);
  expect(note.node.querySelector('button')).toBeNull();
  update(null, { unchecked: { verdict }, bundle: { ...bundle, state: 'ok' } });
  expect(note.isShown).toBe(false);
});
