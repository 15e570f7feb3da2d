import { expect, it } from 'vitest';
import type { ILogPage, ILogRecord, TopicMessage } from '../../services/protocol';
import type { IService } from '../../services/service';
import { LogModel } from './log';
import { LogFeed } from './logfeed';

function record(seq: number): ILogRecord {
  const text = `line ${seq}\n`;
  return { seq, at: seq, rank: 0, execution_id: 'e', execution_count: 1, kind: 'stream', name: 'stdout', text };
}

/** A server with a log of ten records, four in a page. */
class FakeServer {
  readonly asked: object[] = [];
  subscribed = 0;
  send: (message: TopicMessage) => void = () => undefined;
  failure: Error | null = null;

  readonly service = {
    log: async (_group: string, _rank: number, page: { before?: number }): Promise<ILogPage> => {
      this.asked.push(page);
      if (this.failure) {
        throw this.failure;
      }
      const last = (page.before ?? 11) - 1;
      const first = Math.max(1, last - 3);
      const records = Array.from({ length: last - first + 1 }, (_, i) => record(first + i));
      return { records, seq: 10, first, more: first > 1 };
    },
    subscribe: (_: unknown, handler: { receive: (message: TopicMessage) => void }) => {
      this.subscribed += 1;
      this.send = handler.receive;
      return { dispose: () => (this.subscribed -= 1) };
    }
  } as unknown as IService;
}

function text(log: LogModel): string {
  return log.blocks.map(block => (block.kind === 'text' ? block.text : '')).join('');
}

it('loads the end, follows, and loads the past on demand', async () => {
  const server = new FakeServer();
  const log = new LogModel();
  const feed = new LogFeed(server.service, 'g', 0, log);
  await feed.start();
  expect([log.first, log.seq, server.subscribed]).toEqual([7, 10, 1]);
  server.send({ type: 'log', group: 'g', rank: 0, records: [record(11)], seq: 11, skipped: 0 });
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
