import { expect, it } from 'vitest';
import type { IDrift, IDriftCell, IMissedCell } from '../../../services/protocol';
import type { IDistExecutions } from '../../../tokens';
import { IAnswer, isOffered, runSteps, stepsOf } from './steps';

function cell(id: string, missed: IMissedCell[], more: Partial<IDriftCell> = {}): IDriftCell {
  const offered = missed.find(({ reason }) => reason === 'replaced')?.ranks ?? '';
  return {
    execution_id: id,
    code: `code of ${id}`,
    missed,
    offered,
    runs: [],
    uses: [],
    ...more
  } as unknown as IDriftCell;
}

const drift = (...cells: IDriftCell[]): IDrift => ({ generation: 0, cells, left_out: 0, forgotten: false });

it('is a step for each reason, in order, and none for what cannot be sent', () => {
  const steps = stepsOf(
    drift(
      cell('e-1', [
        { ranks: '1', reason: 'replaced' },
        { ranks: '2-3', reason: 'skipped' }
      ]),
      cell('e-2', []),
      cell('e-3', [{ ranks: '1', reason: 'replaced' }], { code: null }),
      cell('e-4', [{ ranks: '0', reason: 'changed' }])
    )
  );
  expect(steps.map(({ code, ranks, reason }) => [code, ranks, reason])).toEqual([
    ['code of e-1', '1', 'replaced'],
    ['code of e-1', '2-3', 'skipped'],
    ['code of e-4', '0', 'changed']
  ]);
});

it('checks what is offered, and the cell that the user came from', () => {
  const steps = stepsOf(
    drift(
      cell('e-1', [
        { ranks: '1', reason: 'replaced' },
        { ranks: '2-3', reason: 'skipped' }
      ]),
      cell('e-2', [{ ranks: '1', reason: 'replaced' }], { offered: '', state: 'error' }),
      cell('e-3', [{ ranks: '1-3', reason: 'skipped' }], {
        runs: [{ ranks: '0', version: 1, execution_id: 'e-9', execution_count: 1 }]
      })
    )
  );
  expect(steps.map(step => isOffered(step, null))).toEqual([true, false, false, false]);
  expect(steps.map(step => isOffered(step, 'e-9'))).toEqual([true, false, false, true]);
  expect(steps.map(step => isOffered(step, 'e-1'))).toEqual([true, true, false, false]);
});

it('leaves out what uses what was left out, and runs the others', async () => {
  const missed: IMissedCell[] = [{ ranks: '1', reason: 'replaced' }];
  const steps = stepsOf(drift(cell('sum', missed), cell('mean', missed, { uses: ['sum'] }), cell('after', missed)));
  const submitted: string[] = [];
  const run = async (_: string, { code }: { code: string }): Promise<unknown> => {
    if (code === 'code of sum') {
      throw Object.assign(new Error('all_reduce needs all 2 ranks'), { code: 'needs_all_ranks' });
    }
    submitted.push(code);
    return { id: code };
  };
  const follow = (): unknown => ({
    followed: { ended: Promise.resolve(), execution: { state: 'ok' }, items: [] },
    dispose: () => undefined
  });
  const executions = { run, follow } as unknown as IDistExecutions;
  const outcome = async (answer: IAnswer): Promise<unknown> => {
    const { done, skipped, failed } = await runSteps(steps, {
      executions,
      group: 'g',
      begin: () => undefined,
      ask: async () => answer
    });
    return [done, skipped.map(({ code }) => code), failed?.step.code];
  };
  expect(await outcome('skip')).toEqual([1, ['code of sum', 'code of mean'], undefined]);
  expect(submitted).toEqual(['code of after']);
  expect(await outcome('stop')).toEqual([0, [], 'code of sum']);
});
