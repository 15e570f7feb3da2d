import { expect, it } from 'vitest';
import { callWords, placeWords } from './stackstate';

/** A catalogue that marks what is translated. */
const trans = {
  __: (text: string, ...values: unknown[]) => `<${text.replace(/%(\d)/g, (_, i) => String(values[Number(i) - 1]))}>`
} as never;

it.each([
  ['line 2 of cell [4]: dist.barrier()', '<<line 2 of cell [4]>: dist.barrier()>'],
  ['line 12 of model.py: if x: y', '<<line 12 of model.py>: if x: y>'],
  ['line 1 of the cell', '<line 1 of the cell>'],
  ['since cell [14]', '<since cell [14]>'],
  ['something else', 'something else']
])('places: %s', (place, words) => expect(placeWords(trans, place)).toBe(words));

it.each([
  ['barrier, number 1', 'barrier, <number 1>'],
  ['all_reduce, number 4, float [4]', 'all_reduce, <number 4>, float [4]'],
  ['broadcast (root 0) of process group 1, number 2', 'broadcast, <root 0>, <process group 1>, <number 2>'],
  ['send (peer 1, tag 7)', 'send, <peer 1>, <tag 7>'],
  [
    'all_gather_single in FSDP, number 135, float [2, 4], of cell [3]',
    '<all_gather_single in FSDP>, <number 135>, float [2, 4], <of cell [3]>'
  ]
])('calls: %s', (call, words) => expect(callWords(trans, call)).toBe(words));
