import { nullTranslator } from '@jupyterlab/translation';
import { expect, it } from 'vitest';
import { ageWord } from './agewords';

const trans = nullTranslator.load('jupyterlab');

it.each([
  [-3, 'just now'],
  [59, 'just now'],
  [60, '1 minute ago'],
  [3599, '59 minutes ago'],
  [3600, '1 hour ago'],
  [47 * 3600, '47 hours ago'],
  [49 * 3600, '2 days ago']
])('an age of %i s is %s', (seconds, words) => {
  expect(ageWord(trans, seconds)).toBe(words);
});
