import { PromiseDelegate } from '@lumino/coreutils';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  begin,
  kernel,
  later,
  notebook,
  notebooks,
  open,
  run,
  sent,
  server,
  turns,
  views,
  widgets
} from './opened.harness';

afterEach(() => void vi.restoreAllMocks());

beforeEach(() => {
  // Yjs warns of cells that JupyterLab makes before they are in a document.
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  begin();
});

describe('a notebook in two views', () => {
  it.each([0, 1])('keeps its runs when view %i is closed', async view => {
    open({ a: 'print(1)', k: 'x', b: 'print(2)' });
    const results = ['a', 'k'].map(run);
    await turns();
    views[view].dispose();
    expect(notebooks.isRunning(notebook)).toBe(true);
    server.end(1);
    expect(await results[0]).toBe(true);
    expect(notebooks.isRunning(notebook)).toBe(false);
    expect(widgets.a.model.executionState).toBe('idle');
    expect(widgets.a.model.executionCount).toBe(7);
    expect(JSON.stringify(widgets.a.model.outputs.toJSON())).toContain('"state":"ok"');
    await turns();
    expect(kernel.ran).toEqual(['k']);
    kernel.results.get('k')!.resolve(true);
    await results[1];
    void run('b');
    await turns();
    expect(server.requests.map(request => request.notebook)).toEqual(['a.ipynb', 'a.ipynb']);
  });

  it('lets nothing wait forever when both are closed', async () => {
    open({ a: 'print(1)', k: 'x' });
    widgets.a.model.setMetadata('tags', ['raises-exception']);
    const results = ['a', 'k'].map(run);
    await turns();
    views.forEach(view => view.dispose());
    expect(notebooks.isRunning(notebook)).toBe(false);
    expect(await results[1]).toBe(false);
    expect(await results[0]).toBe(true);
    expect(kernel.ran).toEqual([]);
    // What was written stays as it was.
    expect(JSON.stringify(widgets.a.model.outputs.toJSON())).toContain('"state":"running"');
  });
});

describe('a cell of an unsigned notebook that is attached to its execution', () => {
  afterEach(() => sessionStorage.clear());

  it.each([
    ['from this page, before a reload', '["e5"]', true],
    ['from another page', '["e6"]', false]
  ])('is trusted if it was run from this page: %s', async (_, own, isTrusted) => {
    sessionStorage.setItem('jupyter-dist:executions', own);
    begin();
    server.list(5, 'running', 'a');
    open({ a: 'print(1)' });
    widgets.a.model.trusted = false;
    await turns();
    notebooks.flush(notebook);
    expect(JSON.stringify(widgets.a.model.outputs.toJSON())).toContain('"execution_id":"e5"');
    expect([widgets.a.model.trusted, widgets.a.model.outputs.trusted]).toEqual([isTrusted, isTrusted]);
  });
});

describe('a notebook that is opened, and that was never saved with what its cells printed', () => {
  const text = (): string => JSON.stringify(widgets.a.model.outputs.toJSON());
  let drawn: string[];

  beforeEach(async () => {
    sessionStorage.setItem('jupyter-dist:executions', '["e5"]');
    begin();
    server.list(5, 'ok', 'a');
    open({ a: 'print(1)' });
    widgets.a.model.trusted = false;
    drawn = [];
    widgets.a.model.outputs.changed.connect((_, { type, newValues }) => {
      drawn.push(...(type === 'add' || type === 'set' ? newValues : []).map(() => text()));
    });
    await turns();
  });
  afterEach(() => sessionStorage.clear());

  it('draws the output of a cell that has ended once, with all of it', async () => {
    await later();
    server.print(5, 'hello');
    server.end(5);
    await turns();
    expect(drawn).toHaveLength(1);
    expect(text()).toContain('hello');
    expect([widgets.a.model.trusted, widgets.a.model.executionState]).toEqual([true, 'idle']);
  });

  it('is asked for again where the notebook was saved before the output came', async () => {
    notebooks.flush(notebook);
    expect(text()).toContain('"execution_id":"e5"');
    expect(text()).toContain('"state":"running"');
    server.print(5, 'hello');
    server.end(5);
    await turns();
    expect(text()).toContain('hello');
    expect(text()).toContain('"state":"ok"');
  });

  it('names why the output of a cell that has ended did not come', async () => {
    server.fail(5, { code: 'unknown_execution', message: 'There is no such execution.', hint: '' });
    await turns();
    expect(text()).toContain('There is no such execution.');
  });
});

describe('a rank cell behind a kernel cell', () => {
  let results: Promise<unknown>[];

  async function runAll(): Promise<void> {
    results = ['k', 'a'].map(run);
    await turns();
  }

  beforeEach(async () => {
    open({ k: 'x', a: 'print(1)' });
    widgets.k.model.setMetadata('tags', ['raises-exception']);
    await runAll();
  });

  const expectNotSent = async (): Promise<void> => {
    expect(await results[1]).toContain('Aborted');
    expect(sent()).toEqual([]);
    expect(widgets.a.model.executionState).toBe('idle');
  };

  it('runs after it', async () => {
    kernel.results.get('k')!.resolve(true);
    await turns();
    expect(sent()).toEqual(['print(1)']);
  });

  it.each(['restarting', 'autorestarting', 'terminating', 'dead'])(
    'does not run when the kernel is %s',
    async status => {
      kernel.statusChanged.emit(status);
      kernel.results.get('k')!.resolve(false);
      expect(await results[0]).toBe(false);
      await expectNotSent();
    }
  );

  it('does not run when the kernel was changed', async () => {
    kernel.kernelChanged.emit({ oldValue: {} });
    kernel.results.get('k')!.resolve(false);
    await expectNotSent();
  });

  it.each(['pendingInput', 'isTerminating'] as const)(
    'does not run when JupyterLab refuses the kernel cell: %s',
    async reason => {
      kernel.results.get('k')!.resolve(true);
      await turns();
      server.end(1);
      await results[1];
      server.requests.splice(0);
      kernel[reason] = true;
      await runAll();
      kernel.results.get('k')!.resolve(reason === 'isTerminating');
      expect(await results[0]).toBe(reason === 'isTerminating');
      await expectNotSent();
    }
  );

  // Moved, deleted, run again, or a view was closed: the kernel still runs it, and aborts what follows if it fails.
  it.each([true, false])(
    'waits for the end of one that JupyterLab left to the kernel; disposed: %s',
    async isDisposed => {
      widgets.k.isDisposed = isDisposed;
      kernel.results.get('k')!.resolve(false);
      await turns();
      expect(kernel.asked).toBe(1);
      expect(sent()).toEqual([]);
      kernel.nothing.resolve('ok');
      expect(await results[0]).toBe(false);
      await turns();
      expect(sent()).toEqual(['print(1)']);
    }
  );

  it('does not run when the kernel aborts after it, or is restarted meanwhile', async () => {
    kernel.results.get('k')!.resolve(false);
    kernel.nothing.resolve('aborted');
    await expectNotSent();
    kernel.nothing = new PromiseDelegate();
    await runAll();
    kernel.results.get('k')!.resolve(false);
    kernel.nothing.reject(new Error('Canceled future for execute_request message before replies were done'));
    await expectNotSent();
  });

  it('does not run when it was moved and its output is an error', async () => {
    kernel.results.get('k')!.resolve(true);
    await turns();
    server.end(1);
    await results[1];
    server.requests.splice(0);
    widgets.k.model.deleteMetadata('tags');
    await runAll();
    widgets.k.isDisposed = true;
    widgets.k.model.outputs.add({ output_type: 'error', ename: 'ValueError', evalue: '', traceback: [] });
    kernel.results.get('k')!.resolve(false);
    await expectNotSent();
  });

  it('does not run when what waits is aborted, as before a restart', async () => {
    notebooks.abortWaiting(notebook);
    // At once: what is written later could be the output of the next run.
    expect(await results[1]).toBe(false);
    expect(JSON.stringify(widgets.a.model.outputs.toJSON())).toContain('Cancelled before it ran.');
    void run('a');
    await turns();
    expect(sent()).toEqual([]);
    kernel.results.get('k')!.resolve(true);
    await turns();
    expect(sent()).toEqual(['print(1)']);
  });
});

describe('a kernel cell behind a rank cell', () => {
  let results: Promise<unknown>[];

  beforeEach(async () => {
    open({ a: 'print(1)', k: 'x', b: 'print(2)' });
    results = ['a', 'k', 'b'].map(run);
    await turns();
  });

  it('does not run when the kernel was restarted meanwhile, nor do the cells after it', async () => {
    kernel.statusChanged.emit('restarting');
    server.end(1);
    expect(await results[1]).toBe(false);
    expect(await results[2]).toContain('Aborted');
    expect(kernel.ran).toEqual([]);
    expect(widgets.k.model.executionState).toBe('idle');
    expect(sent()).toEqual(['print(1)']);
  });

  it('runs on a kernel that was started meanwhile', async () => {
    kernel.kernelChanged.emit({ oldValue: null });
    kernel.statusChanged.emit('starting');
    server.end(1);
    await results[0];
    await turns();
    expect(kernel.ran).toEqual(['k']);
  });
});

it('a cell that is run while a restart is on its way is sent after it', async () => {
  const answered = new PromiseDelegate<void>();
  server.restarting = group => (group === 'g' ? answered.promise : null);
  open({ a: 'print(1)' });
  void run('a');
  await later();
  expect(sent()).toEqual([]);
  answered.resolve();
  await turns();
  expect(sent()).toEqual(['print(1)']);
});

describe('the question about cells that need all ranks', () => {
  it('is asked again when such a cell is run again, while another runs for hours', async () => {
    const asked: string[] = [];
    const answers: ('cancel' | 'all')[] = ['cancel', 'all'];
    notebooks.askFirst = async message => answers[asked.push(message) - 1];
    open({ a: 'train()', b: 'barrier(1)', c: 'barrier(2)' });
    void run('a');
    await later();
    expect(await run('b')).toContain('Aborted');
    await later();
    // Once for the cells of one command.
    void run('b');
    void run('c');
    await later();
    expect(asked).toHaveLength(2);
    expect(server.requests.filter(({ ask_first: asks }) => !asks).map(({ code, ranks }) => [code, ranks])).toEqual([
      ['barrier(1)', 'all'],
      ['barrier(2)', 'all']
    ]);
    expect(notebooks.isRunning(notebook)).toBe(true);
  });
});
