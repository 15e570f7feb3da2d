import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANSWER_MS, DOUBT_MS, LATE_MS, Liveness, PATIENCE_MS, SILENT_MS } from './liveness';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function opened() {
  const options = { ask: vi.fn(), lost: vi.fn() };
  const liveness = new Liveness(options);
  liveness.opening();
  liveness.start();
  return { liveness, ...options };
}

test('a silent connection is asked, and lost if nothing comes', () => {
  const { liveness, ask, lost } = opened();
  liveness.sent();
  vi.advanceTimersByTime(ANSWER_MS);
  expect(ask).toHaveBeenCalledOnce();
  liveness.heard();
  vi.advanceTimersByTime(SILENT_MS);
  expect(ask).toHaveBeenCalledTimes(2);
  vi.advanceTimersByTime(PATIENCE_MS);
  expect(lost).not.toHaveBeenCalled();
  vi.advanceTimersByTime(LATE_MS);
  expect(lost).toHaveBeenCalledOnce();
  expect(SILENT_MS + PATIENCE_MS + LATE_MS).toBeLessThan(30000);
});

test('when the network changes it is asked at once, and kept if the server answers, as one on the same machine does', () => {
  const { liveness, ask, lost } = opened();
  liveness.doubt();
  liveness.doubt();
  expect(ask).toHaveBeenCalledOnce();
  liveness.heard();
  vi.advanceTimersByTime(DOUBT_MS + LATE_MS);
  expect(lost).not.toHaveBeenCalled();
  liveness.doubt();
  vi.advanceTimersByTime(DOUBT_MS + LATE_MS);
  expect(lost).toHaveBeenCalledOnce();
  liveness.doubt();
  expect(ask).toHaveBeenCalledTimes(2);
});
