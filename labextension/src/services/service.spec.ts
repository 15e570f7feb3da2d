import { ServerConnection } from '@jupyterlab/services';
import { afterEach, expect, test, vi } from 'vitest';
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
