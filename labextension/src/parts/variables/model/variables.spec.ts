import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DistError } from '../../../services/errors';
import type { GroupState, IComparison, IGroup, IVariables } from '../../../services/protocol';
import type { IDistGroups } from '../../../tokens';
import { phaseOf } from '../../../model/format/states';
import { VariablesModel } from './variables';

const ANSWER: IVariables = { ranks: '0', busy: '', silent: '', left_out: 0, variables: [], memory: [] };

function group(state: GroupState, running: string[], stateAt: number): IGroup {
  const rank = { rank: 0, state: running.length > 0 ? 'busy' : 'idle', state_at: stateAt };
  return { id: 'g-1', generation: 0, state, running, ranks: [rank] } as unknown as IGroup;
}

const idle = (stateAt: number): IGroup => group('ready', [], stateAt);
const busy = (stateAt: number): IGroup => group('ready', ['e-1'], stateAt);

it.each<[IGroup | null, string]>([
  [idle(1), 'idle'],
  [busy(1), 'busy'],
  [group('restarting', [], 1), 'starting'],
  [group('parked', [], 1), 'away'],
  [group('dead', [], 1), 'gone'],
  [null, 'gone']
])('knows when ranks can be asked', (state, phase) => {
  expect(phaseOf(state)).toBe(phase);
});

describe('VariablesModel', () => {
  const groups = { groups: [] as IGroup[], changed: null as unknown };
  const signal = new Signal<unknown, void>(groups);
  const service = { variables: vi.fn(), compare: vi.fn() };
  let model: VariablesModel;

  async function become(next: IGroup): Promise<void> {
    groups.groups = [next];
    signal.emit();
    await vi.advanceTimersByTimeAsync(1000);
  }

  beforeEach(() => {
    vi.useFakeTimers();
    groups.changed = signal;
    groups.groups = [idle(1)];
    service.variables.mockReset().mockResolvedValue(ANSWER);
    service.compare.mockReset();
    model = new VariablesModel(service, groups as unknown as IDistGroups, 'g-1');
  });

  afterEach(() => {
    model.dispose();
    vi.useRealTimers();
  });

  it('asks nothing while it is hidden, and once when it is shown', async () => {
    await become(busy(2));
    await become(idle(3));
    expect(service.variables).not.toHaveBeenCalled();
    model.setVisible(true);
    await vi.advanceTimersByTimeAsync(1000);
    await become(idle(3));
    expect(service.variables).toHaveBeenCalledTimes(1);
    expect(model.isCurrent(model.listed!)).toBe(true);
  });

  it('asks nothing while a cell runs, keeps the last answer, and asks when it has ended', async () => {
    model.setVisible(true);
    await vi.advanceTimersByTimeAsync(1000);
    await become(busy(2));
    await model.refresh();
    await model.compare('model');
    expect(service.variables).toHaveBeenCalledTimes(1);
    expect(service.compare).not.toHaveBeenCalled();
    expect(model.isCurrent(model.listed!)).toBe(false);
    await become(idle(3));
    expect(service.variables).toHaveBeenCalledTimes(2);
    expect(model.isCurrent(model.listed!)).toBe(true);
  });

  it('keeps why a question failed, and does not repeat it by itself', async () => {
    const error = new DistError({ code: 'incompatible', message: 'Another version.', hint: '' });
    service.variables.mockRejectedValue(error);
    model.setVisible(true);
    await vi.advanceTimersByTimeAsync(1000);
    await become(idle(1));
    expect(service.variables).toHaveBeenCalledTimes(1);
    expect(model.error).toBe(error);
  });

  it('has a comparison for each name until it is closed', async () => {
    service.compare.mockResolvedValue({ name: 'model', differences: [] } as unknown as IComparison);
    const done = model.compare('model');
    expect(model.comparisons.get('model')).toMatchObject({ result: null, error: null });
    await done;
    expect(model.comparisons.get('model')!.result!.name).toBe('model');
    model.closeComparison('model');
    expect(model.comparisons.size).toBe(0);
  });
});
