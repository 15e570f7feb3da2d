import { Signal } from '@lumino/signaling';
import { beforeEach, expect, it, vi } from 'vitest';
import type { IDrift, IDriftCell, IGroup } from '../../../services/protocol';
import type { IDistGroups } from '../../../tokens';
import { MissedOffer } from './offer';

const offered = (...ids: string[]): IDrift => ({
  generation: 0,
  cells: ids.map(id => ({ execution_id: id, runs: [], offered: '1' }) as unknown as IDriftCell),
  left_out: 0,
  forgotten: false
});

function group(at: number, more: Partial<IGroup> = {}): IGroup {
  return {
    id: 'g-1',
    state: 'ready',
    generation: 1,
    running: [],
    ranks: [{ rank: 0, state_at: at }],
    ...more
  } as unknown as IGroup;
}

let known: IGroup | null;
const groups = { changed: null as unknown, find: () => known };
const signal = new Signal<unknown, void>(groups);
const service = { drift: vi.fn() };

beforeEach(() => {
  Signal.clearData(groups);
  groups.changed = signal;
  known = group(10);
  service.drift.mockReset().mockResolvedValue(offered('e-1', 'e-2'));
});

async function begin(): Promise<{ offer: MissedOffer; seen: number[] }> {
  const offer = new MissedOffer(service, groups as unknown as IDistGroups, 'g-1');
  const seen: number[] = [];
  offer.changed.connect(() => void seen.push(offer.cells));
  await offer.look();
  return { offer, seen };
}

function become(next: IGroup | null): void {
  known = next;
  signal.emit();
}

it('is asked again when cells have run, and not while they run', async () => {
  const { seen } = await begin();
  expect(seen).toEqual([2]);
  become(group(10));
  become(group(20, { running: ['e-3'] }));
  expect(service.drift).toHaveBeenCalledTimes(1);
  service.drift.mockResolvedValue(offered('e-2'));
  become(group(21));
  await expect.poll(() => seen).toEqual([2, 1]);
  service.drift.mockResolvedValue(offered());
  become(group(22));
  await expect.poll(() => seen).toEqual([2, 1, 0]);
});

it.each([
  ['the group is gone', null],
  ['its ranks were restarted', group(10, { generation: 2 })]
])('ends when %s', async (_, next) => {
  const { offer, seen } = await begin();
  become(next);
  expect(seen).toEqual([2, 0]);
  expect(offer.isDisposed).toBe(true);
  become(group(30));
  expect(service.drift).toHaveBeenCalledTimes(1);
});
