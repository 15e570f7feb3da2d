import { ServerConnection } from '@jupyterlab/services';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Topic } from './protocol';
import { DistService } from './service';

/** The browser's WebSocket, with the server's end in the test's hands. */
class Socket {
  constructor() {
    Socket.last = this;
  }

  close(): void {
    this.readyState = 3;
  }

  open(): void {
    this.readyState = 1;
    this.onopen();
    this.say({ type: 'hello', server: 's' });
  }

  say(message: object): void {
    this.onmessage({ data: JSON.stringify(message) });
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  onmessage: (event: { data: string }) => void = () => undefined;
  onopen = (): void => undefined;
  readyState = 0;
  readonly sent: { type: string; key: string; rank: number; topic?: string }[] = [];
  static last: Socket;
}

afterEach(() => void vi.useRealTimers());

/** What a server without groups answers to a subscription to all groups. */
const GROUPS = { type: 'changes', seq: 1, groups: [], changes: [], order: [] };

/** A connected page. */
async function connect(): Promise<{ service: DistService; socket: Socket }> {
  vi.useFakeTimers();
  const settings = ServerConnection.makeSettings({
    WebSocket: Socket as unknown as typeof WebSocket,
    fetch: () => Promise.reject(new TypeError('Failed to fetch'))
  });
  const service = new DistService(settings);
  await vi.advanceTimersByTimeAsync(2000);
  const socket = Socket.last;
  socket.open();
  socket.say(GROUPS);
  return { service, socket };
}

test('one message to the widgets of several ranks, of which some refuse: each gets its own refusal only', async () => {
  vi.useFakeTimers();
  const settings = ServerConnection.makeSettings({ WebSocket: Socket as unknown as typeof WebSocket });
  const service = new DistService(settings);
  await vi.advanceTimersByTimeAsync(2000);
  const socket = Socket.last;
  socket.open();
  const content = { comm_id: 'c', data: {}, metadata: {}, msg_id: 'm-1' };
  const refused = new Map<number, string>();
  for (const rank of [0, 1, 2]) {
    service.sendToWidget('g', rank, 'comm_msg', content).catch(({ message }) => refused.set(rank, message));
  }
  const requests = socket.sent.filter(({ type }) => type === 'comm');
  expect(requests.map(({ rank }) => rank)).toEqual([0, 1, 2]);
  for (const request of [requests[2], requests[1]]) {
    socket.say({ type: 'error', error: { code: 'rank_dead', message: `Rank ${request.rank} has ended.` }, request });
  }
  await vi.advanceTimersByTimeAsync(0);
  expect([...refused]).toEqual([
    [2, 'Rank 2 has ended.'],
    [1, 'Rank 1 has ended.']
  ]);
  service.dispose();
});

describe('a cell whose answer is lost', () => {
  const CELL = { code: '1', ranks: 'all' };
  const asked: string[] = [];

  /** A page whose POSTs are answered by these, one after the other, and then by the last. */
  async function openPage(...answers: (() => Promise<Response>)[]): Promise<{ service: DistService; socket: Socket }> {
    vi.useFakeTimers();
    asked.length = 0;
    const fetch = (request: Request): Promise<Response> => {
      asked.push(request.headers.get('Idempotency-Key')!);
      return (answers.length > 1 ? answers.shift()! : answers[0])();
    };
    const settings = ServerConnection.makeSettings({
      WebSocket: Socket as unknown as typeof WebSocket,
      fetch: fetch as typeof globalThis.fetch
    });
    const service = new DistService(settings);
    await vi.advanceTimersByTimeAsync(2000);
    Socket.last.open();
    return { service, socket: Socket.last };
  }

  const down = (): Promise<Response> => Promise.reject(new TypeError('Failed to fetch'));
  const gateway = async (): Promise<Response> => new Response('<html>Bad Gateway</html>', { status: 502 });
  const cut = async (): Promise<Response> =>
    new Response(new ReadableStream({ start: stream => stream.error(new TypeError('network error')) }));
  const taken = async (): Promise<Response> => new Response(JSON.stringify({ id: 'e' }), { status: 201 });

  test('is asked for, with the same key, for as long as a server takes to restart', async () => {
    const { service, socket } = await openPage(down, gateway, cut, down, down, taken);
    const answer = service.submit('g', CELL);
    const [{ key }] = socket.sent.filter(({ type }) => type === 'submit');
    (socket as unknown as { onclose(): void }).onclose();
    await vi.advanceTimersByTimeAsync(20000);
    expect(await answer).toEqual({ id: 'e' });
    expect(asked).toEqual([key, key, key, key, key, key]);
    service.dispose();
  });

  test.each([true, false])('may run although it is refused then; sent before: %s', async isSent => {
    const body = {
      error: { code: 'agent_unreachable', message: 'The agent is stopped.', hint: 'Variables are kept.' }
    };
    const { service, socket } = await openPage(async () => new Response(JSON.stringify(body), { status: 503 }));
    if (!isSent) {
      (socket as unknown as { onclose(): void }).onclose();
    }
    const answer = service.submit('g', CELL).catch(reason => reason);
    await vi.advanceTimersByTimeAsync(11000); // without an answer to what was sent by the WebSocket
    const hint = isSent ? expect.stringContaining('when the agent responds') : 'Variables are kept.';
    expect(await answer).toMatchObject({ code: 'agent_unreachable', isUnanswered: isSent, hint });
    expect(asked).toHaveLength(1);
    service.dispose();
  });

  test('is an error after half a minute, and not asked for any more', async () => {
    const { service, socket } = await openPage(gateway);
    const answer = service.submit('g', CELL).catch(reason => reason);
    (socket as unknown as { onclose(): void }).onclose();
    await vi.advanceTimersByTimeAsync(31000);
    expect(await answer).toMatchObject({ code: 'server_unreachable', message: expect.stringContaining('502') });
    const times = asked.length;
    expect(times).toBeGreaterThan(5);
    await vi.advanceTimersByTimeAsync(60000);
    expect(asked).toHaveLength(times);
    service.dispose();
  });
});

describe('a connection', () => {
  const asks = ({ sent }: Socket): object[] => sent.filter(({ topic }) => topic === 'groups');

  /** Run a cell, and do not wait for what becomes of it. */
  const run = (service: DistService): void =>
    void service.submit('g', { code: '1', ranks: 'all' }).catch(() => undefined);

  test('that is dead and not closed is given up when a cell is not answered, and the page connects again', async () => {
    const { service, socket } = await connect();
    const connected: boolean[] = [];
    service.connectionChanged.connect((_, is) => connected.push(is));
    await vi.advanceTimersByTimeAsync(5000);
    run(service);
    await vi.advanceTimersByTimeAsync(9000);
    expect(asks(socket)).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2000);
    expect(asks(socket)).toHaveLength(2); // it is asked whether it is there
    await vi.advanceTimersByTimeAsync(12000);
    expect([socket.readyState, connected, Socket.last === socket]).toEqual([3, [false], false]);
    Socket.last.open();
    expect([connected, service.connected]).toEqual([[false, true], true]);
    service.dispose();
  });

  test('that is dead while the page sends nothing is given up, too', async () => {
    const { service, socket } = await connect();
    await vi.advanceTimersByTimeAsync(75000);
    expect([socket.readyState, Socket.last === socket]).toEqual([3, false]);
    service.dispose();
  });

  test('whose server answers is kept, even if a cell is not answered: its agent may be stopped', async () => {
    const { service, socket } = await connect();
    run(service);
    for (let seconds = 0; seconds < 300; seconds += 15) {
      const before = asks(socket).length;
      await vi.advanceTimersByTimeAsync(15000);
      if (asks(socket).length > before) {
        socket.say(GROUPS);
      }
    }
    expect(asks(socket).length).toBeGreaterThan(3);
    expect([socket.readyState, Socket.last]).toEqual([1, socket]);
    service.dispose();
  });

  test('of a page whose timers come late is kept: what the server said meanwhile is read first', async () => {
    const { service, socket } = await connect();
    run(service);
    await vi.advanceTimersByTimeAsync(20500); // it was asked, and time is up
    expect(asks(socket)).toHaveLength(2);
    socket.say(GROUPS);
    await vi.advanceTimersByTimeAsync(20000);
    expect([socket.readyState, Socket.last]).toEqual([1, socket]);
    service.dispose();
  });

  test('on which a large message takes its time is not given up again and again', async () => {
    const { service } = await connect();
    const RECEIVING = 70; // seconds from the beginning of a connection, after which the server is heard at once
    const sockets = new Map<Socket, number>();
    run(service);
    for (let now = 0; now < 1800; now += 1) {
      await vi.advanceTimersByTimeAsync(1000);
      const { last } = Socket;
      if (last.readyState === 0) {
        last.open();
        last.say(GROUPS);
        run(service);
      }
      const since = sockets.get(last) ?? now;
      sockets.set(last, since);
      if (now - since >= RECEIVING && asks(last).length > 1) {
        last.say(GROUPS);
      }
    }
    expect(sockets.size).toBeGreaterThan(1);
    expect(sockets.size).toBeLessThan(6);
    service.dispose();
  });
});

test('a connection that is never answered is given up in time, and named until one is answered', async () => {
  vi.useFakeTimers();
  const settings = ServerConnection.makeSettings({ WebSocket: Socket as unknown as typeof WebSocket });
  const service = new DistService(settings);
  const connected: boolean[] = [];
  service.connectionChanged.connect((_, is) => connected.push(is));
  await vi.advanceTimersByTimeAsync(2000);
  const first = Socket.last;
  await vi.advanceTimersByTimeAsync(18000);
  expect([first.readyState, Socket.last === first, service.unopenedSeconds]).toEqual([0, true, null]);
  await vi.advanceTimersByTimeAsync(5000);
  expect([first.readyState, Socket.last === first, service.unopenedSeconds]).toEqual([3, false, 20]);
  expect(connected).toEqual([false]);
  const second = Socket.last;
  await vi.advanceTimersByTimeAsync(30000); // a slow line gets more time
  expect(Socket.last).toBe(second);
  await vi.advanceTimersByTimeAsync(20000);
  expect([second.readyState, service.unopenedSeconds]).toEqual([3, 40]);
  Socket.last.open();
  expect([connected, service.unopenedSeconds, service.connected]).toEqual([[false, false, true], null, true]);
  service.dispose();
  expect(vi.getTimerCount()).toBe(0);
});

test('a connection that is refused is not called unanswered', async () => {
  vi.useFakeTimers();
  const settings = ServerConnection.makeSettings({ WebSocket: Socket as unknown as typeof WebSocket });
  const service = new DistService(settings);
  await vi.advanceTimersByTimeAsync(25000);
  expect(service.unopenedSeconds).toBe(20);
  (Socket.last as unknown as { onclose(): void }).onclose();
  expect(service.unopenedSeconds).toBeNull();
  service.dispose();
});

describe('an answer that never comes', () => {
  /** A page whose requests are answered like this. */
  function openPage(fetch: (request: Request, init: RequestInit) => Promise<Response>): DistService {
    vi.useFakeTimers();
    const settings = ServerConnection.makeSettings({
      WebSocket: Socket as unknown as typeof WebSocket,
      fetch: fetch as typeof globalThis.fetch
    });
    return new DistService(settings);
  }

  const endless = (): Response =>
    new Response(new ReadableStream({ start: stream => stream.enqueue(new Uint8Array(1)) }));

  test.each([
    ['at all', () => new Promise<Response>(() => undefined)],
    ['to its end', async () => endless()]
  ])('%s is an error in time, and the request is over', async (_, fetch) => {
    const signals: AbortSignal[] = [];
    const service = openPage((_, { signal }) => {
      signals.push(signal!);
      return fetch();
    });
    const settled: { message: string; code: string }[] = [];
    service.groups().catch(reason => settled.push(reason));
    service.status('g', { wait: 30, not_state: 'ready' }).catch(reason => settled.push(reason));
    await vi.advanceTimersByTimeAsync(115000);
    expect(settled).toEqual([]);
    await vi.advanceTimersByTimeAsync(10000);
    expect(settled.map(({ code, message }) => [code, message])).toEqual([
      ['server_unreachable', 'The Jupyter server did not answer within 120 s.']
    ]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    await vi.advanceTimersByTimeAsync(30000); // which it was asked to wait
    expect(settled[1].message).toBe('The Jupyter server did not answer within 150 s.');
    service.dispose();
  });

  test('of a download is an error only when none of it comes', async () => {
    let more: (() => void) | null = null;
    const service = openPage(async () => {
      const start = (stream: ReadableStreamDefaultController): void => {
        more = () => stream.enqueue(new Uint8Array(3));
      };
      return new Response(new ReadableStream({ start }));
    });
    vi.stubGlobal('fetch', () => new Promise(() => undefined)); // the question for the cookie
    const settled: string[] = [];
    service
      .download('g', `${ServerConnection.makeSettings().baseUrl}log`)
      .catch(({ message }) => settled.push(message));
    await vi.advanceTimersByTimeAsync(15000);
    for (let minutes = 0; minutes < 5; minutes++) {
      more!();
      await vi.advanceTimersByTimeAsync(60000);
    }
    expect(settled).toEqual([]);
    await vi.advanceTimersByTimeAsync(125000);
    expect(settled).toEqual(['The Jupyter server did not answer within 120 s.']);
    vi.unstubAllGlobals();
    service.dispose();
  });
});

describe('a subscription that fails', () => {
  const error = (code: string): object => ({ code, message: 'It failed.', hint: '' });

  /** Let time pass on a connection whose server answers. */
  async function live(socket: Socket, ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 5000) {
      await vi.advanceTimersByTimeAsync(Math.min(left, 5000));
      socket.say({ type: 'hello', server: 's' });
    }
  }

  test.each([
    { topic: 'memory', group: 'g' },
    { topic: 'devices' },
    { topic: 'comms', group: 'g' },
    { topic: 'log', group: 'g', rank: 0 }
  ] as Topic[])('is renewed, of $topic', async topic => {
    const { service, socket } = await connect();
    const said: string[] = [];
    const handler = { receive: ({ type }: { type: string }) => said.push(type), asked: () => said.push('asked') };
    const subscription = service.subscribe(topic, handler);
    const requests = (): object[] =>
      socket.sent.filter(request => request.type === 'subscribe' && request.topic !== 'groups');
    for (const code of ['agent_unreachable', 'internal']) {
      socket.say({ type: 'error', error: error(code), request: topic });
      await live(socket, 11000);
    }
    expect(requests()).toEqual(Array(3).fill({ type: 'subscribe', ...topic }));
    expect(said).toEqual(['error', 'asked', 'error', 'asked']);
    await live(socket, 60000);
    expect(requests()).toHaveLength(3); // no other error came
    socket.say({ type: 'error', error: error('unknown_group'), request: topic }); // it is no use to ask again
    await live(socket, 60000);
    expect(requests()).toHaveLength(3);
    socket.say({ type: 'error', error: error('internal'), request: topic });
    subscription.dispose();
    await vi.advanceTimersByTimeAsync(60000);
    expect(requests()).toHaveLength(3);
    service.dispose();
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('a server of an earlier version, which does not have an address: the hint is what to do about it', async () => {
  const error = { code: 'not_found', message: 'There is nothing here.', hint: 'All addresses are in openapi.json.' };
  const fetch = async (): Promise<Response> => new Response(JSON.stringify({ error }), { status: 404 });
  const settings = ServerConnection.makeSettings({ WebSocket: Socket as unknown as typeof WebSocket, fetch });
  const service = new DistService(settings);
  const reason = await service.groups().catch(error => error);
  expect(reason).toMatchObject({ name: 'DistError', code: 'not_found', status: 404 });
  expect(reason.hint).toContain('restart the Jupyter server');
  service.dispose();
});

test('a page to log in, in place of an answer, is an error that says so', async () => {
  const fetch = async (): Promise<Response> => new Response('<!DOCTYPE html><title>Log in</title>', { status: 200 });
  const settings = ServerConnection.makeSettings({ WebSocket: Socket as unknown as typeof WebSocket, fetch });
  const service = new DistService(settings);
  const reason = await service.groups().catch(error => error);
  expect(reason).toMatchObject({ name: 'DistError', code: 'bad_response', status: 200 });
  expect(reason.message).toContain('page to log in');
  expect(reason.hint).not.toBe('');
  service.dispose();
});
