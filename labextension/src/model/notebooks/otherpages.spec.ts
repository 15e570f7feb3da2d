import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { begin, notebook, notebooks, open, report, run, server, widgets } from './opened.harness';

beforeEach(() => {
  // Yjs warns of cells that JupyterLab makes before they are in a document.
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  vi.useFakeTimers();
  begin();
});

afterEach(() => {
  report();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const countOf = (cell: string): number | null => widgets[cell].model.executionCount;

it('shows what another page runs in a cell of the same code, and nothing twice', async () => {
  open({ a: 'print(1)', b: 'print(2)' });
  await vi.advanceTimersByTimeAsync(0);
  server.list(5, 'running', 'a', 'print(1)');
  server.list(6, 'running', 'b', 'print("other code")');
  report('e5', 'e6');
  expect(notebooks.isRunning(notebook)).toBe(false);
  await vi.advanceTimersByTimeAsync(1000);
  expect(notebooks.isRunning(notebook)).toBe(true);
  server.end(5);
  await vi.advanceTimersByTimeAsync(0);
  expect([notebooks.isRunning(notebook), countOf('a'), countOf('b')]).toEqual([false, 7, null]);

  // What the user has cleared stays away, whatever else the page looks for.
  widgets.a.model.clearExecution();
  notebooks.look();
  await vi.advanceTimersByTimeAsync(0);
  expect(countOf('a')).toBeNull();
});

it('shows a cell that ended before its group was seen to run it, when the page is looked at', async () => {
  open({ a: 'print(1)' });
  await vi.advanceTimersByTimeAsync(0);
  server.list(5, 'ok', 'a', 'print(1)');
  notebooks.look();
  await vi.advanceTimersByTimeAsync(0);
  server.end(5);
  await vi.advanceTimersByTimeAsync(0);
  expect(countOf('a')).toBe(7);
});

it('leaves cells to the kernel that runs them: its cells may be on ranks, too', async () => {
  open({ k: 'print(1)' });
  await vi.advanceTimersByTimeAsync(0);
  server.list(5, 'running', 'k', 'print(1)');
  report('e5');
  await vi.advanceTimersByTimeAsync(1000);
  expect(notebooks.isRunning(notebook)).toBe(false);
});

it('asks for nothing after cells of its own', async () => {
  open({ a: 'print(1)' });
  await vi.advanceTimersByTimeAsync(0);
  const asked = vi.spyOn(server, 'executions');
  void run('a');
  await vi.advanceTimersByTimeAsync(0);
  report('e1');
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).not.toHaveBeenCalled();
});
