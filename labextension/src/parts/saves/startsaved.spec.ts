import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { IGroup } from '../../services/protocol';
import type { IDistService } from '../../tokens';
import { SavedStart } from './startsaved';

const trans = nullTranslator.load('jupyter_dist');
const shown = (): [string, unknown][] =>
  Notification.manager.notifications.map(({ message, options }) => [message, options.autoClose]);

// JupyterLab's manager is one for all files.
beforeEach(() => Notification.dismiss());
afterEach(() => Notification.dismiss());

it('a start from a save that is gone: the group has ended, and the notification closes by itself', async () => {
  const group = { id: 'g', name: 'train', state: 'ready' } as IGroup;
  const ended: string[] = [];
  const service = {
    saves: () => Promise.resolve({ saves: [] }),
    shutdown: async (id: string) => void ended.push(id)
  } as unknown as IDistService;
  const saved = new SavedStart(service, {} as never, {} as never, trans);
  await saved.begin(group, { name: 'first', folder: '/saves' });
  expect(ended).toEqual(['g']);
  expect(shown()).toEqual([
    ['There is no save first in /saves any more. train was ended again: it had no variables.', expect.any(Number)]
  ]);
});
