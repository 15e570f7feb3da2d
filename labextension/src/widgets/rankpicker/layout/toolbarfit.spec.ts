import { expect, it } from 'vitest';
import { formFor } from './toolbarfit';

it('shows as much as there is room for, and never less than a button', () => {
  expect(formFor(1000, 8)).toBe('full');
  expect(formFor(335, 8)).toBe('short');
  expect(formFor(230, 8)).toBe('button');
  expect(formFor(0, 2)).toBe('button');
  expect(formFor(300, 2)).toBe('full');
});

it('has no toggle per rank for very many, or for a group that does not run', () => {
  expect(formFor(5000, 32)).toBe('short');
  expect(formFor(5000, 0)).toBe('short');
});

it('believes what was measured, for words of other languages are longer', () => {
  const seen = new Map([['full 2', 400]]);
  expect(formFor(300, 2, seen)).toBe('short');
  expect(formFor(400, 2, seen)).toBe('full');
});
