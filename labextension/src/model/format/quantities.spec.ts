import { expect, it } from 'vitest';
import { clockTime, formatBytes, formatPercent, formatSeconds, formatStepTime, fraction } from './quantities';

it.each([
  [null, '-'],
  [0, '0 B'],
  [999, '999 B'],
  [1000, '0.98 kB'],
  [1024 * 1024, '1.00 MB'],
  [420 * 1024 ** 2, '420 MB'],
  [79.6 * 1024 ** 3, '79.6 GB']
])('formatBytes(%j) is %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

it.each([
  [null, '-'],
  [-3, '0.0 s'],
  [0.0061, '7 ms'],
  [0.0996, '0.1 s'],
  [0.44, '0.4 s'],
  [12.3, '12 s'],
  [59.7, '1:00'],
  [185, '3:05'],
  [3727, '1:02:07']
])('formatSeconds(%j) is %s', (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});

it('knows what it does not know', () => {
  expect(formatPercent(null)).toBe('-');
  expect(formatPercent(36.6)).toBe('37 %');
  expect(fraction(5, null)).toBe(0);
  expect(fraction(20, 10)).toBe(1);
});

it.each([
  [0.0042, '4.2 ms'],
  [0.061, '61 ms'],
  [0.9996, '1.0 s'],
  [75, '1:15']
])('formatStepTime(%j) is %s', (seconds, text) => {
  expect(formatStepTime(seconds)).toBe(text);
});

it('the time of a day has the date of another day only', () => {
  const noon = new Date(2026, 0, 5, 12, 0).getTime() / 1000;
  expect(clockTime(noon - 3600, noon)).not.toContain('2026');
  expect(clockTime(noon - 86400, noon)).toContain('2026');
});
