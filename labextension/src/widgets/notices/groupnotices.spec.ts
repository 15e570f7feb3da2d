import { Notification } from '@jupyterlab/apputils';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { groupNotices, notifyGroup } from './groupnotices';

const shown = (): string[] => Notification.manager.notifications.map(({ message }) => message);
const groups = (generation: number) => ['g-1', 'g-2'].map(id => ({ id, generation }));
const STAYS = { autoClose: false, holds: true } as const;

beforeEach(() => {
  vi.useFakeTimers();
  Notification.dismiss();
});
afterEach(() => {
  groupNotices.keep(groups(1));
  groupNotices.keep([]);
  vi.runAllTimers();
  vi.useRealTimers();
});

/** JupyterLab loses changes of a younger notification. */
const settle = (): void => void vi.advanceTimersByTime(1000);

it('shows the newest notice of each group, and the one before it again when that has ended', () => {
  const limit = notifyGroup('g-1', 'the time limit is near', 'warning', STAYS);
  notifyGroup('g-2', 'of another group', 'info', STAYS);
  settle();
  const hang = notifyGroup('g-1', 'cannot end', 'warning', STAYS);
  expect(shown()).toEqual(['cannot end', 'of another group']);
  settle();
  hang.end();
  expect(shown()).toEqual(['the time limit is near', 'of another group']);
  settle();
  limit.end();
  expect(shown()).toEqual(['of another group']);
});

it('shows no more than one also when several come at once', () => {
  const notices = ['first', 'second', 'third'].map(text => notifyGroup('g-1', text, 'info', STAYS));
  expect(shown()).toEqual(['first']);
  settle();
  expect(shown()).toEqual(['third']);
  notices[2].end();
  notices[1].end();
  settle();
  expect(shown()).toEqual(['first']);
});

it('shows what has happened once, and then what still holds', () => {
  notifyGroup('g-1', 'replaced', 'info', STAYS);
  settle();
  notifyGroup('g-1', 'saved', 'success', { autoClose: 3000 });
  settle();
  expect(shown()).toEqual(['saved']);
  vi.advanceTimersByTime(3000);
  expect(shown()).toEqual(['replaced']);
  settle();
  notifyGroup('g-1', 'not saved', 'error', { autoClose: false });
  notifyGroup('g-1', 'cannot end', 'warning', STAYS).end();
  settle();
  expect(shown()).toEqual(['replaced']);
});

it('ends what has happened when the ranks are new, and keeps what holds', () => {
  groupNotices.keep(groups(1));
  notifyGroup('g-1', 'the time limit is near', 'warning', STAYS);
  settle();
  notifyGroup('g-1', 'not resized', 'error', { autoClose: false });
  notifyGroup('g-2', 'not saved', 'error', { autoClose: false });
  settle();
  groupNotices.keep(groups(1));
  settle();
  expect(shown()).toEqual(['not saved', 'not resized']);
  groupNotices.keep([{ id: 'g-1', generation: 2 }, ...groups(1).slice(1)]);
  settle();
  expect(shown()).toEqual(['the time limit is near', 'not saved']);
});

it('has a button for the rest of a text that JupyterLab cuts', () => {
  const text = 'Cell [3] cannot end: ranks 0-30 wait in barrier. '.repeat(4);
  const label = 'Show the cell';
  const show = { label, callback: () => undefined };
  notifyGroup('g-1', text, 'warning', { ...STAYS, actions: [show] });
  notifyGroup('g-2', 'short', 'warning', { ...STAYS, actions: [show] });
  const labels = Notification.manager.notifications.map(({ options }) => options.actions?.map(({ label }) => label));
  expect(labels).toEqual([['Show the cell'], ['Show the cell', 'Read all']]);
});

it('follows progress, also of a notice that another hides', () => {
  const saving = notifyGroup('g-1', 'saving', 'in-progress', STAYS);
  settle();
  saving.update('saving: half', 0.5);
  expect(shown()).toEqual(['saving: half']);
  const other = notifyGroup('g-1', 'cannot end', 'warning', STAYS);
  saving.update('saving: most', 0.9);
  settle();
  expect(shown()).toEqual(['cannot end']);
  other.end();
  expect(shown()).toEqual(['saving: most']);
  expect(Notification.manager.notifications[0].options.progress).toBe(0.9);
});

it('does not show again what the user has closed, nor what is about a group that is gone', () => {
  groupNotices.keep(groups(1).slice(0, 1));
  const closed = vi.fn();
  notifyGroup('g-1', 'the time limit is near', 'warning', STAYS);
  settle();
  const notice = notifyGroup('g-1', 'cannot end', 'warning', { ...STAYS, closed });
  settle();
  Notification.dismiss(Notification.manager.notifications[0].id);
  expect(closed).toHaveBeenCalledTimes(1);
  expect(notice.isOver).toBe(true);
  notice.update('cannot end for long');
  expect(shown()).toEqual(['the time limit is near']);
  settle();
  groupNotices.keep([]);
  expect(shown()).toEqual([]);
});
