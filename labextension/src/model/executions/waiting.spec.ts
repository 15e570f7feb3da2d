import { expect, it } from 'vitest';
import type { IExecution, IGroup, RankState } from '../../services/protocol';
import { awaited, isBehindOwn, WaitingModel } from './waiting';
import { addGroupNews } from '../format/states';

function group(states: RankState[], more: Partial<IGroup> = {}, runs: string[] = []): IGroup {
  const ranks = states.map((state, rank) => ({ rank, state, state_at: 100 + rank, execution_id: runs[rank] ?? null }));
  return { id: 'g-1', name: 'train', state: 'ready', running: [], queued: [], ranks, ...more } as unknown as IGroup;
}

function execution(id: string, ranks: string, state = 'running'): IExecution {
  return { id, group: 'g-1', ranks, state, notebook: 'a.ipynb', execution_count: 5 } as unknown as IExecution;
}

const known = (...all: IExecution[]): Map<string, IExecution> => new Map(all.map(one => [one.id, one]));
const mine = execution('e-9', '0-1', 'queued');

it('is the slowest step of its own ranks while the group starts', () => {
  const starting = group(['joining', 'importing', 'starting'], { state: 'starting', queued: ['e-9'] });
  expect(awaited(mine, starting, known())).toEqual({ kind: 'ranks', state: 'importing', since: 101 });
});

it('is the return of a group whose tensors are away', () => {
  addGroupNews({ returnsSince: ({ state }) => (state === 'resuming' ? 107 : null) });
  const resuming = group(['idle', 'joining'], { state: 'resuming', queued: ['e-9'] });
  expect(awaited(mine, resuming, known())).toEqual({ kind: 'resuming', since: 107 });
  const parking = group(['idle', 'idle'], { state: 'parking', queued: ['e-9'] });
  expect(awaited(mine, parking, known())).toEqual({ kind: 'resuming', since: null });
});

it('is the first cell before it that has one of its ranks', () => {
  const busy = group(['idle', 'busy', 'busy'], { running: ['e-1', 'e-2'], queued: ['e-3', 'e-9', 'e-4'] }, [
    '',
    'e-2',
    'e-1'
  ]);
  const all = known(
    execution('e-1', '2'),
    execution('e-2', '1'),
    execution('e-3', '0-2', 'queued'),
    execution('e-4', '0', 'queued')
  );
  expect(awaited(mine, busy, all)).toMatchObject({ kind: 'cell', execution: { id: 'e-2' }, more: 1 });
});

it('is no cell that has ended on these ranks, but for one of its own notebook', () => {
  const part = group(['idle', 'idle', 'busy'], { running: ['e-1'], queued: ['e-9'] }, ['', '', 'e-1']);
  expect(awaited(mine, part, known({ ...execution('e-1', '0-2'), notebook: 'b.ipynb' }))).toBeNull();
  expect(awaited(mine, part, known(execution('e-1', '0-2')))).toMatchObject({ kind: 'cell' });
});

it('is busy ranks, if it is unknown with what', () => {
  expect(awaited(mine, group(['busy', 'unresponsive', 'busy']), known())).toEqual({ kind: 'busy', ranks: '0-1' });
  expect(awaited(mine, group(['idle', 'idle', 'busy']), known())).toBeNull();
});

it('is said by the first cell of a notebook', () => {
  const busy = group(['busy', 'busy'], { running: ['e-1'], queued: ['e-2', 'e-9'] }, ['e-1', 'e-1']);
  const other = { ...execution('e-1', '0-1'), notebook: 'b.ipynb' };
  const second = execution('e-2', '0-1', 'queued');
  const all = known(other, second, mine);
  expect(isBehindOwn(second, busy, all)).toBe(false);
  expect(isBehindOwn(mine, busy, all)).toBe(true);
  expect(isBehindOwn(mine, busy, known(other, { ...second, ranks: '2' }))).toBe(false);
  expect(isBehindOwn(second, busy, known())).toBe(true); // not yet known
  expect(isBehindOwn(mine, group(['importing'], { state: 'starting', queued: ['e-9'] }), known())).toBe(false);
});

it('requests the cells of a group once, when a cell waits', async () => {
  let asked = 0;
  const busy = group(['busy', 'busy'], { running: ['e-1'], queued: ['e-9'] });
  const service = {
    executions: async () => {
      asked += 1;
      return { executions: [execution('e-1', '0-1'), mine, execution('e-0', '0', 'ok')] };
    }
  };
  const model = new WaitingModel({ find: () => busy }, service);
  expect(model.of(mine)).toMatchObject({ kind: 'busy' });
  await expect.poll(() => model.of(mine)).toMatchObject({ kind: 'cell', execution: { id: 'e-1' } });
  expect(asked).toBe(1);
});
