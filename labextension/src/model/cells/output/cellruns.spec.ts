import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ExecutionState, IExecution } from '../../../services/protocol';
import type { IDistExecutions } from '../../../tokens';
import type { CellRun } from './cellrun';
import { CellRuns } from './cellruns';

const run = (id: string, group: string, state: ExecutionState): CellRun =>
  ({ execution: { id, group, state } as IExecution }) as CellRun;

describe('CellRuns.cancel', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const asked: string[] = [];
  /** The server: what it does about each execution; by default it cancels at once. */
  function runsOf(answers: Record<string, () => Promise<void>>): CellRuns {
    asked.length = 0;
    const cancel = (_: string, id: string): Promise<void> => {
      asked.push(id);
      return answers[id]?.() ?? Promise.resolve();
    };
    return new CellRuns({ cancel } as unknown as IDistExecutions, () => null);
  }

  it('asks for the last queued one first, and for the running one when those are cancelled', async () => {
    await runsOf({}).cancel([run('a', 'g', 'running'), run('b', 'g', 'queued'), run('c', 'g', 'queued')]);
    expect(asked).toEqual(['c', 'b', 'a']);
  });

  it('asks for every run although one cannot be cancelled, and says so', async () => {
    const refused = new Error('The agent of h does not answer.');
    const runs = runsOf({ c: () => Promise.reject(refused) });
    const all = [run('a', 'g', 'running'), run('b', 'h', 'queued'), run('c', 'h', 'queued'), run('d', 'h', 'running')];
    await expect(runs.cancel(all)).rejects.toBe(refused);
    expect([...asked].sort()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('waits a second for queued ones, and not at all for those of another group', async () => {
    const never = (): Promise<void> => new Promise(() => undefined);
    const runs = runsOf({ b: never });
    void runs.cancel([run('a', 'g', 'running'), run('b', 'g', 'queued'), run('c', 'h', 'running')]);
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toEqual(['b', 'c']);
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).toEqual(['b', 'c', 'a']);
  });
});
