import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DistError } from '../../services/errors';
import { begin, later, notebook, notebooks, open, run, server, views, widgets } from './opened.harness';

afterEach(() => void vi.restoreAllMocks());

beforeEach(() => {
  // Yjs warns of cells that JupyterLab makes before they are in a document.
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  begin();
});

describe('a cell that was sent, and refused when it was asked for again', () => {
  const refusal = (code: string): DistError =>
    new DistError({ code, message: 'No answer.', hint: 'Try again.' }, null, true);
  const text = (): string => JSON.stringify(widgets.a.model.outputs.toJSON());

  afterEach(() => void vi.useRealTimers());

  it.each(['agent_unreachable', 'server_unreachable'])('is shown when the server has it after all: %s', async code => {
    vi.useFakeTimers();
    open({ a: 'print(1)' });
    server.refusal = refusal(code);
    expect(await run('a')).toContain('No answer.');
    expect(text()).toContain('If the cell has reached its ranks it runs, and is shown here');
    await vi.advanceTimersByTimeAsync(20000);
    expect(notebooks.isRunning(notebook)).toBe(false);
    server.list(5, 'running', 'a');
    await vi.advanceTimersByTimeAsync(10000); // still connected, as far as the page knows
    expect(notebooks.isRunning(notebook)).toBe(true);
    server.end(5);
    await vi.advanceTimersByTimeAsync(0);
    expect(text()).not.toContain('No answer.');
  });

  it('is looked for as long as its group does not say what it runs, and then for two minutes', async () => {
    vi.useFakeTimers();
    open({ a: 'print(1)' });
    server.refusal = refusal('agent_unreachable');
    await run('a');
    const { executions } = server;
    server.executions = () => Promise.reject(new DistError({ code: 'timed_out', message: '', hint: '' }));
    await vi.advanceTimersByTimeAsync(600000);
    server.executions = executions;
    await vi.advanceTimersByTimeAsync(100000);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(100000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not looked for when it was only refused', async () => {
    vi.useFakeTimers();
    open({ a: 'print(1)' });
    server.refusal = new DistError({ code: 'agent_unreachable', message: 'No answer.', hint: 'Try again.' });
    await run('a');
    expect(text()).toContain('Try again.');
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('never shows an earlier run of the cell as its own', async () => {
    server.list(5, 'ok', 'a'); // after the file was saved
    open({ a: 'print(1)' });
    await later();
    server.end(5);
    await later();
    server.connected = false;
    server.refusal = refusal('server_unreachable');
    await run('a');
    expect(text()).toContain('No answer.');
    server.connected = true;
    server.connectionChanged.emit(true);
    await later();
    expect(text()).toContain('No answer.');
    expect(notebooks.isRunning(notebook)).toBe(false);
    views.forEach(view => view.dispose());
  });
});
