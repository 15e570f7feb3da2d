import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { ReplaceDialog } from '../../widgets/state/replacedialog';
import { groupNotices } from '../../widgets/notices/groupnotices';
import { ReplaceCommands } from './replacecommands';

const trans = nullTranslator.load('jupyter_dist');
const shown = (): [string, unknown][] =>
  Notification.manager.notifications.map(({ message, options }) => [message, options.autoClose]);

/** The groups of a page, as the spec sets them. */
class Groups {
  readonly changed = new Signal<this, void>(this);
  groups: IGroup[] = [];
  readonly clock = { now: () => 0 };
  find = (id: string): IGroup | null => this.groups.find(group => group.id === id) ?? null;

  set(...groups: Partial<IGroup>[]): void {
    this.groups = groups.map(group => ({ id: 'g', name: 'train', world_size: 2, generation: 1, ...group }) as IGroup);
    groupNotices.keep(this.groups);
    this.changed.emit();
  }
}

let groups: Groups;
const model = (): IDistGroups => groups as unknown as IDistGroups;

// JupyterLab's manager is one for all files.
beforeEach(() => {
  vi.useFakeTimers();
  Notification.dismiss();
  groups = new Groups();
  groups.set({ state: 'ready' });
});
afterEach(() => {
  groups.set();
  vi.runAllTimers();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('ranks that were not replaced: the notification is there until the group is whole, however that came', async () => {
  const error = { code: 'start_failed', message: 'Rank 1 did not start.', hint: '' };
  const absences = [{ at: 1 }];
  const dead = { state: 'degraded', ranks: [{ rank: 1, state: 'dead', absences }] } as never;
  groups.set(dead);
  vi.spyOn(ReplaceDialog.prototype, 'launch').mockResolvedValue({
    button: { accept: true },
    value: 'empty'
  } as never);
  const service = {
    status: () => Promise.resolve(groups.groups[0]),
    replace: () => Promise.resolve({ replaced: { at: 5 } })
  } as unknown as IDistService;
  const commands = new CommandRegistry();
  commands.addCommand('jupyter-dist:offer-catch-up', { describedBy: { args: {} }, execute: () => undefined });
  const done = new ReplaceCommands(service, model(), commands, trans).replace(groups.groups[0]);
  await vi.advanceTimersByTimeAsync(0);
  groups.set({ ...(dead as object), replaced: { at: 5, seconds: null, error } as never });
  await done;
  expect(shown()).toEqual([['Rank 1 did not start.', false]]);
  vi.advanceTimersByTime(1000);
  groups.set(dead);
  expect(shown()).toHaveLength(1);
  groups.set({ state: 'ready' });
  expect(shown()).toEqual([]);
});
