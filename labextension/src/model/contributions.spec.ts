import { expect, it } from 'vitest';
import { Contributions } from './contributions';

it('keeps what was added in order, and each only once', () => {
  const places = new Contributions();
  let changes = 0;
  places.changed.connect(() => changes++);
  const last = places.add({ id: 'last', rank: 200 });
  places.add({ id: 'usual' });
  places.add({ id: 'first', rank: 1 });
  expect(places.items.map(({ id }) => id)).toEqual(['first', 'usual', 'last']);
  expect(() => places.add({ id: 'usual' })).toThrow("'usual' was added already");
  last.dispose();
  last.dispose();
  expect(places.items.map(({ id }) => id)).toEqual(['first', 'usual']);
  expect(changes).toBe(4);
  places.dispose();
});
