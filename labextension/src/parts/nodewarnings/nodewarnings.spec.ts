import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { IGroup } from '../../services/protocol';
import { NodeWarnings } from './plugin';

const SOON = 'The job is about to reach its time limit. That is at 14:05. Save what you need.';
const EARLIER = 'Slurm ends the job early. That is at 13:50. Save what you need.';

function group(name: string, warning: string | null): IGroup {
  return { id: `g-${name}`, name, allocation: { warning } } as IGroup;
}

function shown(): string[] {
  return Notification.manager.notifications.map(each => each.message);
}

/** JupyterLab loses changes of a notification that was just opened. */
const settle = (): void => void vi.advanceTimersByTime(1000);

// JupyterLab's manager is one for all files.
beforeEach(() => {
  vi.useFakeTimers();
  Notification.dismiss();
});
afterEach(() => void vi.useRealTimers());

it('notifies of a job that waits in vain, until it does not', () => {
  const notices = new NodeWarnings(nullTranslator.load('jupyter_dist'));
  const text = 'Its time limit is longer than the partition allows.';
  const waits = { ...group('wide', null), allocation: { warning: null, can_start: false, text } } as IGroup;
  notices.update([waits, { ...group('other', null), allocation: { warning: null, can_start: true, text } } as IGroup]);
  expect(shown()).toEqual([`Group 'wide' cannot start: ${text}`]);
  settle();
  notices.update([group('wide', null)]);
  expect(shown()).toEqual([]);
});

it('warns once of each time limit, also when it changes, until it does not hold any more', () => {
  const notices = new NodeWarnings(nullTranslator.load('jupyter_dist'));
  notices.update([group('wide', null), { id: 'g-local', name: 'local', allocation: null } as IGroup]);
  expect(shown()).toEqual([]);

  notices.update([group('wide', SOON)]);
  notices.update([group('wide', SOON), group('other', SOON)]);
  expect(shown().sort()).toEqual([`Group 'other': ${SOON}`, `Group 'wide': ${SOON}`]);

  Notification.dismiss(Notification.manager.notifications.find(each => each.message.includes('wide'))!.id);
  notices.update([group('wide', SOON), group('other', SOON)]);
  expect(shown()).toEqual([`Group 'other': ${SOON}`]);

  settle();
  notices.update([group('wide', EARLIER), group('other', null)]);
  expect(shown()).toEqual([`Group 'wide': ${EARLIER}`]);

  settle();
  notices.update([]);
  expect(shown()).toEqual([]);
});
