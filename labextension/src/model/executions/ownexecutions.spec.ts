import { beforeEach, expect, it } from 'vitest';
import { OwnExecutions } from './ownexecutions';

beforeEach(() => sessionStorage.clear());

it('knows after a reload what this tab has submitted, and nothing else', () => {
  new OwnExecutions().add('e-1');
  const reloaded = new OwnExecutions();
  expect(reloaded.has('e-1')).toBe(true);
  expect(reloaded.has('e-2')).toBe(false);
});

it('keeps the last 500', () => {
  const own = new OwnExecutions();
  for (let i = 0; i < 600; i++) {
    own.add(`e-${i}`);
  }
  expect(own.has('e-0')).toBe(true);
  expect([new OwnExecutions().has('e-99'), new OwnExecutions().has('e-100')]).toEqual([false, true]);
});

it('takes a damaged or forbidden storage for an empty one', () => {
  sessionStorage.setItem('jupyter-dist:executions', '{"e-1"');
  expect(new OwnExecutions().has('e-1')).toBe(false);
  const own = new OwnExecutions(null);
  own.add('e-1');
  expect(own.has('e-1')).toBe(true);
});
