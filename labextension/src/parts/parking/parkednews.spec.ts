import { nullTranslator } from '@jupyterlab/translation';
import { expect, it } from 'vitest';
import type { IGroup, IParkedState } from '../../services/protocol';
import { parkedNews } from './parkednews';

const trans = nullTranslator.load('jupyter_dist');
const group = (state: string, parked: Partial<IParkedState> | null = null): IGroup =>
  ({ state, parked }) as unknown as IGroup;

it.each([
  ['host', 'parked, 2.00 GB in host memory'],
  ['file', 'parked, 2.00 GB in files']
] as const)('says where a parked group has its bytes: %s', (place, words) => {
  const parked = { place, held_bytes: 2 * 1024 ** 3 };
  expect(parkedNews.stateWords?.(group('parked', parked), trans)).toBe(words);
  expect(parkedNews.stateWords?.(group('resuming', parked), trans)).toBe(null);
});

it('names what of a parked group stays where it was', () => {
  const left = ['8 MiB stay.', 'A graph stays.'];
  expect(parkedNews.lines?.(group('parked', { left }))).toEqual(left);
  expect(parkedNews.lines?.(group('resuming', { left }))).toEqual([]);
});

it('knows since when a group returns', () => {
  expect(parkedNews.returnsSince?.(group('resuming', { resuming_since: 107 }))).toBe(107);
  expect(parkedNews.returnsSince?.(group('parking'))).toBe(null);
});
