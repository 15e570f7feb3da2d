import { expect, it, vi } from 'vitest';
import { Clock } from './clock';

it('believes the smallest difference', () => {
  let local = 1000;
  const clock = new Clock(() => local);
  clock.observe(895);
  clock.observe(900);
  clock.observe(890);
  expect(clock.now()).toBe(900);
  local = 1010;
  expect(clock.since(905)).toBe(5);
  expect(clock.since(9999)).toBe(0);
});

it('is not before what has passed', () => {
  const clock = new Clock(() => 1000);
  clock.passed(700);
  expect(clock.now()).toBe(1000);
  clock.passed(1300);
  expect(clock.now()).toBe(1300);
  clock.observe(1200);
  expect(clock.now()).toBe(1300);
});

it('ticks only while held', () => {
  vi.useFakeTimers();
  const clock = new Clock();
  let ticks = 0;
  clock.ticked.connect(() => ticks++);
  const release = clock.hold();
  vi.advanceTimersByTime(1100);
  expect(ticks).toBe(2);
  release();
  release();
  vi.advanceTimersByTime(5000);
  expect(ticks).toBe(2);
  vi.useRealTimers();
});
