import { expect, it } from 'vitest';
import { formFor } from './toolbarfit';

it('is wide where there is room for it', () => {
  expect(formFor(1000, 8)).toBe('wide');
  expect(formFor(100, 8)).toBe('narrow');
  expect(formFor(0, 2)).toBe('narrow');
});

it('has a longer text for a group that does not run', () => {
  expect(formFor(200, 32)).toBe('wide');
  expect(formFor(200, 0)).toBe('narrow');
});

it('believes what was measured, for words of other languages are longer', () => {
  const seen = new Map([['wide 2', 400]]);
  expect(formFor(300, 2, seen)).toBe('narrow');
  expect(formFor(400, 2, seen)).toBe('wide');
});
