import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { groupNotices } from '../../widgets/notices/groupnotices';
import { ResizeCommands } from './resizecommands';

const trans = nullTranslator.load('jupyter_dist');
const train = { id: 'g', name: 'train', world_size: 2, generation: 1, state: 'ready' } as unknown as IGroup;

/** The groups of a page, as the spec sets them. */
class Groups {
  readonly changed = new Signal<this, void>(this);
  groups: IGroup[] = [];
  find = (id: string): IGroup | null => this.groups.find(group => group.id === id) ?? null;

  set(...groups: IGroup[]): void {
    this.groups = groups;
    groupNotices.keep(groups);
    this.changed.emit();
  }
}

let groups: Groups;

// JupyterLab's manager is one for all files.
beforeEach(() => {
  vi.useFakeTimers();
  Notification.dismiss();
  groups = new Groups();
  groups.set(train);
});
afterEach(() => {
  groups.set();
  vi.runAllTimers();
  vi.useRealTimers();
});

it('a resize of a group that ends meanwhile: the notification closes by itself, as nothing would end it', async () => {
  const service = { resize: () => Promise.resolve({ resized: { at: 1 } }) } as unknown as IDistService;
  const done = new ResizeCommands(service, groups as unknown as IDistGroups, trans).resize(train, 4);
  await vi.advanceTimersByTimeAsync(0);
  groups.set();
  await done;
  const shown = Notification.manager.notifications.map(({ message, options }) => [message, options.autoClose]);
  expect(shown).toEqual([['train has ended, and was not resized.', expect.any(Number)]]);
});
