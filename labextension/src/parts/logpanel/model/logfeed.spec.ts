import { PromiseDelegate } from '@lumino/coreutils';
import { afterEach, expect, it, vi } from 'vitest';
import type { ILogPage, ILogRecord, TopicMessage } from '../../../services/protocol';
import type { IService } from '../../../services/service';
import { LogModel } from './log';
import { LogFeed } from './logfeed';

function record(seq: number): ILogRecord {
  const text = `line ${seq}\n`;
  return { seq, at: seq, rank: 0, execution_id: 'e', execution_count: 1, kind: 'stream', name: 'stdout', text };
}

/** A server with a log of ten records, four in a page; it sends those that are printed while it is asked for them. */
class FakeServer {
  readonly asked: object[] = [];
  /** From where each subscription continued. */
  readonly since: number[] = [];
  subscribed = 0;
  failure: Error | null = null;
  /** What a page waits for that was read already. */
  held: Promise<void> = Promise.resolve();

  /** A new connection subscribes to the same again. */
  reconnect: () => void = () => undefined;

  readonly service = {
    logs: async (_group: string, _rank: number, page: { before?: number }): Promise<ILogPage> => {
      this.asked.push(page);
      const { _last: seq, failure } = this;
      await this.held;
      if (failure) {
        throw failure;
      }
      const last = (page.before ?? seq + 1) - 1;
      const first = Math.max(1, last - 3);
      const records = Array.from({ length: last - first + 1 }, (_, i) => record(first + i));
      return { records, seq, first, more: first > 1 };
    },
    subscribe: (
      _: unknown,
      handler: { since: () => number; receive: (message: TopicMessage) => void; asked: () => void }
    ) => {
      const subscribe = (): void => {
        if (this._failed) {
          this._failed = false;
          handler.asked();
        }
        this.since.push(handler.since());
        this._sent = handler.since();
        this._receive = handler.receive;
        this._send();
      };
      this.reconnect = subscribe;
      this.subscribed += 1;
      subscribe();
      const dispose = (): void => {
        this.subscribed -= 1;
        this._receive = null;
      };
      return { dispose, resubscribe: subscribe };
    }
  } as unknown as IService;

  /** A rank prints the next line. */
  print(): void {
    this._last += 1;
    this._send();
  }

  /** The subscription fails; no records follow until there is another one. */
  fail(code: string): void {
    const receive = this._receive;
    this._receive = null;
    this._failed = true;
    receive!({ type: 'error', error: { code, message: `It is ${code}.`, hint: '' }, request: null });
  }

  private _send(): void {
    const records = Array.from({ length: this._last - this._sent }, (_, i) => record(this._sent + 1 + i));
    if (records.length > 0 && this._receive) {
      this._sent = this._last;
      this._receive({ type: 'log', group: 'g', rank: 0, records, seq: this._last, skipped: 0 });
    }
  }

  private _last = 10;
  private _sent = 0;
  private _failed = false;
  private _receive: ((message: TopicMessage) => void) | null = null;
}

afterEach(() => void vi.useRealTimers());

function text(log: LogModel): string {
  return log.blocks.map(block => (block.kind === 'text' ? block.text : '')).join('');
}

it('loads the end, follows, and loads the past on demand', async () => {
  const server = new FakeServer();
  const log = new LogModel();
  const feed = new LogFeed(server.service, 'g', 0, log);
  await feed.start();
  expect([log.first, log.seq, server.subscribed]).toEqual([7, 10, 1]);
  server.print();
  await feed.older();
  await feed.older();
  await feed.older();
  await feed.older();
  expect(server.asked.slice(1)).toEqual([{ before: 7 }, { before: 3 }]);
  expect(text(log)).toBe(Array.from({ length: 11 }, (_, i) => `line ${i + 1}\n`).join(''));
  feed.dispose();
});

it('stops, and continues where it stopped', async () => {
  const server = new FakeServer();
  const feed = new LogFeed(server.service, 'g', 0, new LogModel());
  await feed.start();
  feed.stop();
  expect(server.subscribed).toBe(0);
  await feed.start();
  expect([server.subscribed, server.asked.length]).toEqual([1, 1]);
  feed.dispose();
  expect(server.subscribed).toBe(0);
});

it('does not follow what was hidden before its first page came', async () => {
  const server = new FakeServer();
  const feed = new LogFeed(server.service, 'g', 0, new LogModel());
  const started = feed.start();
  feed.stop();
  await started;
  expect(server.subscribed).toBe(0);
  feed.dispose();
});

it('says why there is no log, and tries again', async () => {
  const server = new FakeServer();
  server.failure = new Error('There is no rank 9.');
  const feed = new LogFeed(server.service, 'g', 9, new LogModel());
  await feed.start();
  expect(feed.error).toBe('There is no rank 9.');
  server.failure = null;
  await feed.start();
  expect(feed.error).toBeNull();
  feed.dispose();
});

/** A feed whose user has scrolled up until its window has no room for the end, line 11. */
async function scrolledUp() {
  const server = new FakeServer();
  const log = new LogModel({ lines: 6, characters: 1e6 });
  const feed = new LogFeed(server.service, 'g', 0, log);
  await feed.start();
  log.keepsTop = true;
  await feed.older();
  server.print();
  expect(log.atEnd).toBe(false);
  log.keepsTop = false;
  return { server, log, feed };
}

it('shows what is printed while the end is loaded', async () => {
  const { server, log, feed } = await scrolledUp();
  const loaded = new PromiseDelegate<void>();
  server.held = loaded.promise;
  const ended = feed.toEnd();
  server.print();
  feed.stop();
  await feed.start(); // hidden and shown meanwhile
  loaded.resolve();
  await ended;
  server.print();
  expect(text(log)).toBe('line 8\nline 9\nline 10\nline 11\nline 12\nline 13\n');
  expect(server.since).toEqual([10, 11]);
  feed.dispose();
});

it('continues where it was if the end cannot be loaded', async () => {
  const { server, log, feed } = await scrolledUp();
  server.failure = new Error('It is late.');
  await feed.toEnd();
  server.print();
  expect([feed.error, log.seq, log.unseen]).toEqual(['It is late.', 12, 2]);
  expect(server.since).toEqual([10, 11]);
  feed.dispose();
});

it('says why no records come until the server is asked again', async () => {
  const server = new FakeServer();
  const log = new LogModel();
  const feed = new LogFeed(server.service, 'g', 0, log);
  await feed.start();
  for (const code of ['timed_out', 'unknown_rank']) {
    server.fail(code);
    expect(feed.error).toBe(`It is ${code}.`);
    server.reconnect();
    expect(feed.error).toBeNull();
  }
  server.fail('agent_unreachable');
  server.print();
  server.reconnect();
  expect([feed.error, log.seq, server.since]).toEqual([null, 11, [10, 10, 10, 10]]);
  feed.dispose();
});
