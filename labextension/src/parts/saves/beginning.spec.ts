import { nullTranslator } from '@jupyterlab/translation';
import { expect, it } from 'vitest';
import type { IGroup, ILastSave } from '../../services/protocol';
import type { IDistService } from '../../tokens';
import { beginningWith, replaceChoice } from './beginning';

const trans = nullTranslator.load('jupyter_dist');
const SAVE = { name: 'before', folder: '/saves', saved_at: 5, world_size: 3 } as ILastSave;

it('new processes begin with the last save of the group', () => {
  const choice = replaceChoice({ last_save: SAVE }, 65, trans);
  expect(choice.body).toEqual({ state: 'save', save: 'before', folder: '/saves' });
  expect(choice.label).toContain('before');
  expect(choice.label).toContain('1 minute ago');
});

it('where there is none, that is said, and it cannot be chosen', () => {
  expect(replaceChoice({ last_save: null }, 65, trans)).toMatchObject({
    hint: 'There is no save of this group that it can restore.',
    body: null
  });
});

it('a group that is not there can be started with its last save, and so many ranks', async () => {
  let saves = [SAVE];
  const service = { lastSaves: async () => ({ saves }) } as unknown as IDistService;
  const begun: unknown[] = [];
  const begin = async (group: IGroup, save: ILastSave): Promise<void> => void begun.push(group, save);
  const beginning = beginningWith(service, begin, () => 65, trans);
  const way = await beginning.find('train');
  expect(way).toMatchObject({ numRanks: 3, chosen: SAVE });
  const group = {} as IGroup;
  await beginning.begin(group, way!.chosen);
  expect(begun).toEqual([group, SAVE]);
  saves = [];
  expect(await beginning.find('train')).toBeNull();
});
