import { expect, test, vi } from 'vitest';
import type { IGroup, IMemorySample, TopicMessage } from '../../services/protocol';
import type { IService } from '../../services/service';
import { Clock } from '../format/clock';
import { GroupMonitor } from './monitor';

function watched() {
  let receive: (message: TopicMessage) => void = () => undefined;
  const service = {
    subscribe: (_: unknown, subscriber: { receive: typeof receive }) => {
      receive = subscriber.receive;
      return { dispose: () => undefined };
    },
    lastSamples: async () => ({ samples: [] }),
    executions: async () => ({ executions: [] })
  } as unknown as IService;
  const monitor = new GroupMonitor(service, new Clock(), 'g');
  monitor.watch();
  const drawn = vi.fn();
  monitor.memory.changed.connect(drawn);
  const sample = (at: number) =>
    receive({ type: 'memory', group: 'g', sample: { at, ranks: [] } as unknown as IMemorySample } as TopicMessage);
  const state = (running: string[], generation = 0) =>
    monitor.update({ running, queued: [], generation } as unknown as IGroup);
  return { monitor, drawn, sample, state };
}

test('the memory of an idle group is drawn every five seconds, and no sample is lost', () => {
  const { monitor, drawn, sample, state } = watched();
  state([]);
  for (let at = 100; at <= 111; at++) {
    sample(at);
  }
  expect(drawn).toHaveBeenCalledTimes(3); // at 100, 105 and 110
  expect(monitor.memory.size).toBe(11);
});

test('it is drawn with each sample while a cell runs, and with the first one after it', () => {
  const { drawn, sample, state } = watched();
  sample(100);
  state(['e-1']);
  sample(101);
  sample(102);
  state([]);
  sample(103);
  sample(104);
  expect(drawn).toHaveBeenCalledTimes(4);
});

test('no sample of processes that were replaced is drawn', () => {
  const { monitor, sample, state } = watched();
  sample(100);
  sample(101);
  state([], 1);
  expect(monitor.memory.size).toBe(0);
  sample(106);
  expect(monitor.memory.size).toBe(1);
});
