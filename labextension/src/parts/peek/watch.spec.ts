import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DistError } from '../../services/errors';
import type { IGroup, IPeeked } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';
import { WatchModel } from './watch';

const NOTHING: IPeeked = { values: [], missing: {}, silent: [] };

function group(running: string[]): IGroup {
  const rank = { rank: 0, state: running.length > 0 ? 'busy' : 'idle', state_at: 1 };
  return { id: 'g-1', generation: 0, state: 'ready', running, ranks: [rank] } as unknown as IGroup;
}

describe('WatchModel', () => {
  const groups = { groups: [] as IGroup[], changed: null as unknown };
  const signal = new Signal<unknown, void>(groups);
  const peekValues = vi.fn();
  let model: WatchModel;

  async function become(...running: string[]): Promise<void> {
    groups.groups = [group(running)];
    signal.emit();
    await vi.advanceTimersByTimeAsync(100);
  }

  beforeEach(async () => {
    vi.useFakeTimers();
    groups.changed = signal;
    groups.groups = [group([])];
    peekValues.mockReset().mockResolvedValue(NOTHING);
    model = new WatchModel({ peekValues }, groups as unknown as IDistGroups, 'g-1');
  });

  afterEach(() => {
    model.dispose();
    vi.useRealTimers();
  });

  it('asks while a cell runs and it is visible, and nothing between cells without names', async () => {
    await become('e-1');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(peekValues).not.toHaveBeenCalled();
    model.setVisible(true);
    await vi.advanceTimersByTimeAsync(6100);
    expect(peekValues.mock.calls).toEqual(Array(4).fill(['g-1', { names: '' }]));
    expect(model.answer).toBe(NOTHING);
    await become();
    expect(model.answer).toBeNull();
    model.setVisible(false);
    await become('e-2');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(peekValues).toHaveBeenCalledTimes(4);
  });

  it('asks for names between cells, too, once they are typed and after each cell', async () => {
    model.setVisible(true);
    await become();
    for (const names of ['l', 'lo', 'loss']) {
      model.names = names;
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(peekValues).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(peekValues.mock.calls).toEqual([['g-1', { names: 'loss' }]]);
    await become('e-1');
    await become();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(peekValues).toHaveBeenCalledTimes(3);
  });

  it('drops an answer to earlier names, shows why ranks did not answer, and asks again', async () => {
    model.setVisible(true);
    let late!: (answer: IPeeked) => void;
    peekValues.mockReturnValueOnce(new Promise<IPeeked>(resolve => (late = resolve)));
    await become('e-1');
    const error = new DistError({ code: 'agent_unreachable', message: 'It is gone.', hint: '' });
    peekValues.mockRejectedValueOnce(error);
    model.names = 'loss';
    await vi.advanceTimersByTimeAsync(500);
    late({ ...NOTHING, missing: { old: '0' } });
    await vi.advanceTimersByTimeAsync(0);
    expect([model.answer, model.error]).toEqual([null, error]);
    await vi.advanceTimersByTimeAsync(2100);
    expect([model.answer, model.error]).toEqual([NOTHING, null]);
  });
});
