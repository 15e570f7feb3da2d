import { ServerConnection } from '@jupyterlab/services';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DistService } from './service';

/** The browser's WebSocket, with the server's end in the test's hands. */
class Socket {
  constructor() {
    Socket.last = this;
  }

  close(): void {
    this.readyState = 3;
  }

  open(accepts: string[]): void {
    this.readyState = 1;
    this.onopen();
    this.say({ type: 'hello', server: 's', accepts });
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
  readonly sent: { type: string; key: string; rank: number }[] = [];
  static last: Socket;
}

afterEach(() => void vi.useRealTimers());

test('one message to the widgets of several ranks, of which some refuse: each gets its own refusal only', async () => {
  vi.useFakeTimers();
  const settings = ServerConnection.makeSettings({ WebSocket: Socket as unknown as typeof WebSocket });
  const service = new DistService(settings);
  await vi.advanceTimersByTimeAsync(2000);
  const socket = Socket.last;
  socket.open(['submit', 'comm']);
  const content = { comm_id: 'c', data: {}, metadata: {}, msg_id: 'm-1' };
  const refused = new Map<number, string>();
  for (const rank of [0, 1, 2]) {
    service.sendComm('g', rank, 'comm_msg', content).catch(({ message }) => refused.set(rank, message));
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
    Socket.last.open(['submit']);
    return { service, socket: Socket.last };
  }

  const down = (): Promise<Response> => Promise.reject(new TypeError('Failed to fetch'));
  const gateway = async (): Promise<Response> => new Response('<html>Bad Gateway</html>', { status: 502 });
  const cut = async (): Promise<Response> =>
    new Response(new ReadableStream({ start: stream => stream.error(new TypeError('network error')) }));
  const taken = async (): Promise<Response> => new Response(JSON.stringify({ id: 'e' }), { status: 201 });

  test('is asked for, with the same key, for as long as a server takes to restart', async () => {
    const { service, socket } = await openPage(down, gateway, cut, down, down, taken);
    const answer = service.run('g', CELL);
    const [{ key }] = socket.sent.filter(({ type }) => type === 'submit');
    (socket as unknown as { onclose(): void }).onclose();
    await vi.advanceTimersByTimeAsync(20000);
    expect(await answer).toEqual({ id: 'e' });
    expect(asked).toEqual([key, key, key, key, key, key]);
    service.dispose();
  });

  test('is an error after half a minute, and not asked for any more', async () => {
    const { service, socket } = await openPage(gateway);
    const answer = service.run('g', CELL).catch(reason => reason);
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
