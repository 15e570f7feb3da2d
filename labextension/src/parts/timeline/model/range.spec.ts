import { expect, test } from 'vitest';
import { ALL, choose, pan, rangeOf, zoom } from './range';

const full = { from: 1000, to: 4600 };

test('all is seen at first, and what ends now continues with the time', () => {
  expect(rangeOf(ALL, full)).toEqual(full);
  const last = { seconds: 60, to: null };
  expect(rangeOf(last, full)).toEqual({ from: 4540, to: 4600 });
  expect(rangeOf(last, { from: 1000, to: 4700 })).toEqual({ from: 4640, to: 4700 });
  expect(rangeOf({ seconds: 60, to: 2000 }, { from: 1000, to: 4700 })).toEqual({ from: 1940, to: 2000 });
  expect(rangeOf({ seconds: 9000, to: null }, full)).toEqual(full);
});

test('zooming keeps the time under the pointer, and ends at all and at two seconds', () => {
  const closer = zoom(ALL, full, 0.5, 1900);
  expect(rangeOf(closer, full)).toEqual({ from: 1450, to: 3250 });
  expect(zoom(closer, full, 10, 2000)).toEqual(ALL);
  let choice = ALL;
  for (let i = 0; i < 50; i++) {
    choice = zoom(choice, full, 0.5, 2000);
  }
  const { from, to } = rangeOf(choice, full);
  expect(to - from).toBeCloseTo(2);
  expect((from + to) / 2).toBeGreaterThan(1998);
});

test('moving stops at the ends, and at the last one it follows', () => {
  const part = choose({ from: 2000, to: 2600 }, full);
  expect(rangeOf(pan(part, full, 0.5), full)).toEqual({ from: 2300, to: 2900 });
  expect(rangeOf(pan(part, full, -9), full)).toEqual({ from: 1000, to: 1600 });
  expect(pan(part, full, 99)).toEqual({ seconds: 600, to: null });
  expect(choose({ from: 900, to: 1100 }, full)).toEqual({ seconds: 200, to: 1200 });
});
