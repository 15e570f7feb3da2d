import { describe, expect, it, vi } from 'vitest';
import type { IDebugReplies, IDebugRequest, IGroup } from '../../services/protocol';
import type { IService } from '../../services/service';
import { fromLineOne } from './cellfiles';
import { DebugConnection } from './debugconnection';

/** Where the ranks of two machines keep the files of cells, and what they replied when they were stopped in one. */
const FOLDERS = ['/home/u/groups/g-1/cells/', '/tmp/jupyter_dist_cells_k3x0ab1/', '/tmp/jupyter_dist_cells_9s_pq2/'];
const FILE = '2951348871.py';

function replyOf(rank: number, command: string): object {
  const folder = FOLDERS[rank];
  const frame = (id: number, name: string, line: number, path: string) => ({
    id,
    name,
    line,
    column: 1,
    source: { path, sourceReference: 0 }
  });
  const breakpoints = [{ source: folder + FILE, breakpoints: [{ line: 2 }] }];
  const bodies: Record<string, object> = {
    debugInfo: { isStarted: true, tmpFilePrefix: folder, tmpFileSuffix: '.py', breakpoints, stoppedThreads: [1] },
    dumpCell: { sourcePath: folder + FILE },
    stackTrace: {
      stackFrames: [frame(3, 'f', 2, folder + FILE), frame(4, 'g', 7, '/home/u/train.py')],
      totalFrames: 2
    },
    setBreakpoints: { breakpoints: [{ id: 0, verified: true, line: 2, source: { path: folder + FILE } }] }
  };
  return { type: 'response', seq: 0, request_seq: 0, command, success: true, body: bodies[command] ?? {} };
}

/**
 * A page's debugger on ranks of which some are dead. `asked` has who was asked for what, `waiting` what ends those
 * requests that wait for events, in order.
 */
function debugged(states: string[], state = 'ready') {
  const waiting: { rank: string; end: () => void }[] = [];
  const group = {
    id: 'g',
    name: 'train',
    state,
    world_size: states.length,
    ranks: states.map((state, rank) => ({ rank, state }))
  };
  const asked: string[] = [];
  const debug = vi.fn(async (_: string, { ranks, message }: IDebugRequest): Promise<IDebugReplies> => {
    const command = String(message.command);
    asked.push(`${command} ${ranks}`);
    if (command === 'events' && (message.arguments as { wait?: number }).wait !== undefined) {
      await new Promise<void>(end => waiting.push({ rank: ranks!, end }));
    }
    return {
      replies: ranks!
        .split(',')
        .map(Number)
        .map(rank => ({ rank, content: replyOf(rank, command) as Record<string, unknown> }))
    };
  });
  const connection = new DebugConnection({
    id: 'd',
    service: { debug } as unknown as IService,
    group: group as unknown as IGroup,
    current: () => group as unknown as IGroup,
    ranks: 'all',
    path: 'n.ipynb',
    onProblem: message => expect.fail(message)
  });
  const kernel = connection.kernel as {
    requestDebug(content: object): { done: Promise<{ content: { body: never } }> };
  };
  const ask = async (command: string, args: object = {}) =>
    (await kernel.requestDebug({ type: 'request', seq: 1, command, arguments: args }).done).content.body as Record<
      string,
      never
    >;
  return { connection, asked, waiting, ask, debug };
}

describe('a rank on another machine', () => {
  it("has its frames, cells and breakpoints in the first rank's folder, in which JupyterLab looks for cells", async () => {
    const { connection, ask } = debugged(['busy', 'busy']);
    const shown = FOLDERS[0] + FILE;
    const first = await ask('debugInfo');
    connection.show(1);
    await expect.poll(() => connection.shown).toBe(1);
    const second = await ask('debugInfo');
    expect(second).toEqual(first);
    const { stackFrames } = await ask('stackTrace', { threadId: 1 });
    expect((stackFrames as { source: { path: string } }[]).map(frame => frame.source.path)).toEqual([
      shown,
      '/home/u/train.py'
    ]);
    // What all are asked for is answered by the first of them that lives.
    expect((await ask('dumpCell')).sourcePath).toBe(shown);
    connection.dispose();
  });
});

describe('the panel', () => {
  it('has the lists that JupyterLab reads, of a rank that refuses, too', async () => {
    const { ask, debug } = debugged(['idle', 'idle']);
    const content = { type: 'response', success: false, message: 'There is no debugpy.' };
    debug.mockResolvedValueOnce({ replies: [{ rank: 0, content }] });
    expect(await ask('debugInfo')).toMatchObject({ breakpoints: [], stoppedThreads: [], isStarted: false });
  });

  it('is opened by JupyterLab when the debugger is attached, and not again when it was before a reload', async () => {
    const { connection, ask } = debugged(['busy', 'busy']);
    const events: unknown[] = [];
    connection.iopubMessage.connect((_, message) =>
      events.push((message as { content: { event?: string } }).content.event)
    );
    await ask('debugInfo');
    expect(events).not.toContain('initialized');
    await ask('attach');
    expect(events.filter(event => event === 'initialized')).toHaveLength(1);
    connection.dispose();
  });

  it('gets a function that has not begun at line 1', () => {
    const frames = (line: number) => ({ rank: 0, content: { body: { stackFrames: [{ id: 1, line }] } } });
    expect(fromLineOne(frames(0) as never)).toEqual(frames(1));
    expect(fromLineOne(frames(3) as never)).toEqual(frames(3));
  });
});

describe('another rank', () => {
  it('is shown after JupyterLab has what it asked of the one before, step by step', async () => {
    const { connection, asked, ask } = debugged(['busy', 'busy']);
    const stack = ask('stackTrace', { threadId: 1 });
    connection.show(1);
    await stack;
    await ask('scopes', { frameId: 3 });
    await ask('variables', { variablesReference: 1 });
    const ofOne = () => asked.filter(request => request.endsWith(' 1'));
    expect(ofOne()).toEqual([]);
    await expect.poll(() => connection.shown).toBe(1);
    await ask('stackTrace', { threadId: 1 });
    expect(ofOne()).toContain('stackTrace 1');
    connection.dispose();
  });

  it('is not shown if the first one is wanted again meanwhile', async () => {
    const { connection, ask } = debugged(['busy', 'busy']);
    const seen: number[] = [];
    connection.changed.connect(() => seen.push(connection.shown));
    connection.show(1);
    connection.show(0);
    await new Promise(resolve => setTimeout(resolve, 100));
    await ask('debugInfo');
    expect(seen).not.toContain(1);
    connection.dispose();
  });
});

describe('events', () => {
  it('of a rank are waited for once, however often it is shown and attached meanwhile', async () => {
    const { connection, waiting, ask } = debugged(['busy', 'busy']);
    const attach = (): Promise<object> => ask('debugInfo');
    await attach();
    for (const rank of [1, 0, 1, 0, 1, 0]) {
      const before = waiting.length;
      connection.show(rank);
      await expect.poll(() => waiting.length).toBe(before + 1);
    }
    await ask('disconnect');
    await attach();
    expect(waiting.map(({ rank }) => rank).join('')).toBe('01010100');
    // The last one asks again; the others have been waiting since before the rank was shown again.
    waiting.splice(0).forEach(({ end }) => end());
    await expect.poll(() => waiting.length).toBe(1);
    waiting.splice(0).forEach(({ end }) => end());
    await expect.poll(() => waiting.length).toBeGreaterThan(0);
    expect(waiting.map(({ rank }) => rank)).toEqual(['0']);
    connection.dispose();
  });
});

describe('code in the debug console', () => {
  it('is told once JupyterLab has the stack, so that variables are read again', async () => {
    const { connection, ask } = debugged(['busy', 'busy']);
    let evaluated = 0;
    connection.evaluated.connect(() => (evaluated += 1));
    const settle = () => new Promise(resolve => setTimeout(resolve, 0));
    await ask('stackTrace', { threadId: 1 });
    await settle();
    expect(evaluated).toBe(0);
    await ask('evaluate', { expression: 'x = 2' });
    await settle();
    expect(evaluated).toBe(0);
    await ask('stackTrace', { threadId: 1 });
    await ask('stackTrace', { threadId: 1 });
    await settle();
    expect(evaluated).toBe(1);
    connection.dispose();
  });
});

describe('a dead rank', () => {
  it('is not asked, and the others are debugged', async () => {
    const { connection, asked, ask } = debugged(['idle', 'dead', 'idle']);
    for (const command of ['initialize', 'setBreakpoints', 'continue']) {
      await ask(command);
    }
    expect(asked.slice(0, 3)).toEqual(['initialize 0,2', 'setBreakpoints 0,2', 'continue 0,2']);
    connection.dispose();
  });
});

describe('a group that cannot answer', () => {
  it.each(['starting', 'restarting', 'dead', 'lost'])('is not asked while it is %s', async state => {
    const { connection, asked, ask } = debugged(['starting', 'starting'], state);
    await ask('debugInfo');
    expect(asked).toEqual([]);
    connection.dispose();
  });
});
