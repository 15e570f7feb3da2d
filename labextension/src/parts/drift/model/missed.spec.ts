import { Signal } from '@lumino/signaling';
import { beforeEach, expect, it, vi } from 'vitest';
import type { IDrift, IDriftCell, IGroup } from '../../../services/protocol';
import type { IDistGroups } from '../../../tokens';
import { MissedCells, SavedRun } from './missed';

/** Two ranks; rank 1 had no process in these times. */
function group(absences: number[][], more: Partial<IGroup> = {}, at = 50): IGroup {
  const ranks = [
    { rank: 0, state_at: 1 },
    { rank: 1, state_at: at, ...(absences.length > 0 ? { absences } : {}) }
  ];
  return { id: 'g-1', name: 'train', state: 'ready', started_at: 5, running: [], ranks, ...more } as unknown as IGroup;
}

const run = (at: number, more: Partial<SavedRun> = {}): SavedRun => ({
  group: { id: 'g-1', name: 'train', world_size: 2 },
  execution_id: 'e-1',
  state: 'ok',
  started_at: at,
  ...more
});

const offered = (id: string): IDriftCell => ({ execution_id: id, runs: [], offered: '1' }) as unknown as IDriftCell;
const answer = (...cells: IDriftCell[]): IDrift => ({ generation: 0, cells, left_out: 0, forgotten: false });

const groups = { groups: [] as IGroup[], changed: null as unknown, find: () => groups.groups[0] ?? null };
const signal = new Signal<unknown, void>(groups);
const service = { drift: vi.fn() };

beforeEach(() => {
  Signal.clearData(groups);
  groups.changed = signal;
  service.drift.mockReset().mockResolvedValue(answer(offered('e-1')));
});

function begin(first: IGroup): MissedCells {
  groups.groups = [first];
  return new MissedCells(service, groups as unknown as IDistGroups);
}

function become(next: IGroup): void {
  groups.groups = [next];
  signal.emit();
}

it.each<[string, IGroup, SavedRun]>([
  ['no rank was replaced', group([]), run(6)],
  ['it ran afterwards', group([[10, 20]]), run(21)],
  ['it ran before the last restart', group([[10, 20]]), run(4)],
  ['it runs', group([[10, 20]]), run(6, { state: 'running' })],
  ['it never began', group([[10, 20]]), run(6, { started_at: null })]
])('asks nothing when %s', (_, known, saved) => {
  expect(begin(known).by(saved)).toBe('');
  expect(service.drift).not.toHaveBeenCalled();
});

it('asks once after a replacement, and says who has missed it', async () => {
  const missed = begin(group([[10, 20]]));
  const changed = vi.fn();
  missed.changed.connect(changed);
  expect(missed.by(run(6))).toBe('');
  await expect.poll(() => changed).toHaveBeenCalledTimes(1);
  expect(missed.by(run(6))).toBe('1');
  expect(missed.by(run(15, { execution_id: 'e-2' }))).toBe('');
  expect(service.drift).toHaveBeenCalledTimes(1);
});

it('asks again when cells have run, and after another replacement', async () => {
  const missed = begin(group([[10, 20]]));
  missed.by(run(6));
  await expect.poll(() => missed.by(run(6))).toBe('1');
  service.drift.mockResolvedValue(answer());
  become(group([[10, 20]], { running: ['e-7'] }, 60));
  expect(service.drift).toHaveBeenCalledTimes(1);
  expect(missed.by(run(6))).toBe('1');
  become(group([[10, 20]], {}, 61)); // also if it was so short that the page has not seen it run
  await expect.poll(() => missed.by(run(6))).toBe('');
  become(group([[10, 20]], {}, 61));
  expect(service.drift).toHaveBeenCalledTimes(2);
  become(
    group([
      [10, 20],
      [30, 40]
    ])
  );
  missed.by(run(6));
  expect(service.drift).toHaveBeenCalledTimes(3);
});

it('says that ranks were replaced when the group takes cells again, but not what was so when the page was opened', () => {
  const missed = begin(group([[10, 20]]));
  const replaced = vi.fn();
  missed.replaced.connect(replaced);
  become(group([[10, 20]]));
  become(
    group(
      [
        [10, 20],
        [30, 40]
      ],
      { state: 'restarting' }
    )
  );
  expect(replaced).not.toHaveBeenCalled();
  become(
    group([
      [10, 20],
      [30, 40]
    ])
  );
  become(
    group([
      [10, 20],
      [30, 40]
    ])
  );
  expect(replaced).toHaveBeenCalledTimes(1);
  become(group([]));
  expect(replaced).toHaveBeenCalledTimes(1);
});

it('says nothing when the server does not answer', async () => {
  service.drift.mockRejectedValue(new Error('no'));
  const said = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const missed = begin(group([[10, 20]]));
  missed.by(run(6));
  await expect.poll(() => said).toHaveBeenCalled();
  expect(missed.by(run(6))).toBe('');
  expect(service.drift).toHaveBeenCalledTimes(1);
  said.mockRestore();
});
