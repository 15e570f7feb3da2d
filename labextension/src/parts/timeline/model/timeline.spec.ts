import { Signal } from '@lumino/signaling';
import { expect, test } from 'vitest';
import type { IExecution, IGroup, IPastSamples, TopicMessage } from '../../../services/protocol';
import type { IDistGroups } from '../../../tokens';
import { Clock } from '../../../model/format/clock';
import { TimelineModel, TimelineService } from './timeline';

const pageOf = (times: number[], more: boolean): IPastSamples => ({
  times,
  ranks: [
    {
      rank: 0,
      resident_bytes: times,
      allocated_bytes: null,
      reserved_bytes: null,
      peak_bytes: null,
      device_used_bytes: null,
      cpu_percent: times
    }
  ],
  seen: [],
  gaps: [],
  devices: [],
  more
});

function made(pages: IPastSamples[]): {
  model: TimelineModel;
  asked: number[];
  topics: string[];
  receive: (message: TopicMessage) => void;
} {
  const asked: number[] = [];
  const topics: string[] = [];
  let receive: (message: TopicMessage) => void = () => undefined;
  const service = {
    samples: async (_: string, { since }: { since: number }) => {
      asked.push(since);
      return pages.shift() ?? pageOf([], false);
    },
    executions: async () => ({
      executions: [
        {
          id: 'e',
          ranks: '0',
          started_at: 20,
          ended_at: 25,
          state: 'ok',
          statuses: [],
          rank_seconds: { '0': 5 },
          silent: false
        } as unknown as IExecution
      ]
    }),
    subscribe: (topic: { topic: string }, handler: { receive(message: TopicMessage): void }) => {
      topics.push(`+${topic.topic}`);
      receive = handler.receive;
      return { dispose: () => topics.push(`-${topic.topic}`) };
    }
  } as unknown as TimelineService;
  const group = { id: 'g', devices: [], ranks: [], running: [], queued: [], world_size: 1 } as unknown as IGroup;
  const groups = { groups: [group], changed: new Signal<object, void>({}) } as unknown as IDistGroups;
  return {
    model: new TimelineModel(service, groups, new Clock(() => 200), 'g'),
    asked,
    topics,
    receive: message => receive(message)
  };
}

const live = (at: number): TopicMessage =>
  ({
    type: 'memory',
    group: 'g',
    sample: { at, ranks: [{ rank: 0, resident_bytes: at, cpu_percent: 1 }] }
  }) as unknown as TopicMessage;

test('the past is read page by page, and what comes meanwhile follows it', async () => {
  const { model, asked, receive } = made([pageOf([100, 101], true), pageOf([102], false)]);
  model.setVisible(true);
  receive(live(102));
  receive(live(103));
  await expect.poll(() => model.isLoaded).toBe(true);
  expect(asked).toEqual([0, 101]);
  expect(model.columns.times).toEqual([100, 101, 102, 103]);
  receive(live(104));
  expect(model.columns.last).toBe(104);
  await expect.poll(() => model.bands(0)).toHaveLength(1);
  expect(model.full().from).toBe(20);
});

test('nothing is followed while it is hidden, and only what is new is read afterwards', async () => {
  const { model, asked, topics } = made([pageOf([100], false), pageOf([], false)]);
  expect(topics).toEqual([]);
  model.setVisible(true);
  model.setVisible(true);
  await expect.poll(() => model.isLoaded).toBe(true);
  model.setVisible(false);
  expect(topics).toEqual(['+memory', '-memory']); // CPU ranks have no devices to follow
  model.setVisible(true);
  await expect.poll(() => asked).toEqual([0, 100]);
  model.dispose();
  expect(topics).toEqual(['+memory', '-memory', '+memory', '-memory']);
});
