import { expect, it } from 'vitest';
import { DistError } from '../../services/errors';
import type { IDevice, IDeviceProcess, IDevices, TopicMessage } from '../../services/protocol';
import type { IService } from '../../services/service';
import { DevicesModel, holders } from './devicemonitor';

function process(pid: number, memory: number | null, group: string | null, rank: number | null): IDeviceProcess {
  return { pid, name: 'python', memory_bytes: memory, group, rank, mine: group !== null };
}

it('names our ranks and sums up the others', () => {
  const device = {
    processes: [
      process(1, 10, null, null),
      process(2, 5, 'train', 1),
      process(3, 7, 'train', 0),
      process(4, 3, null, null)
    ]
  } as IDevice;
  expect(holders(device).map(h => [h.group, h.rank, h.processes, h.memory_bytes])).toEqual([
    ['train', 0, 1, 7],
    ['train', 1, 1, 5],
    [null, null, 2, 13]
  ]);
});

it('subscribes while it is watched', async () => {
  const calls: string[] = [];
  let receive: (message: TopicMessage) => void = () => undefined;
  const host = { cpu_count: 2 } as IDevices['host'];
  const first: IDevices = { devices: [], host, processes_hidden: true, problems: [] };
  const service = {
    devices: async () => first,
    subscribe: (_: unknown, handler: { receive: (message: TopicMessage) => void }) => {
      calls.push('subscribe');
      receive = handler.receive;
      return { dispose: () => calls.push('dispose') };
    }
  } as unknown as IService;
  const model = new DevicesModel(service);
  const [one, two] = [model.watch(), model.watch()];
  await Promise.resolve();
  receive({ ...first, type: 'devices', host: { ...host, cpu_count: 4 } });
  expect(model.devices).toMatchObject({ host: { cpu_count: 4 }, processes_hidden: true });
  one.dispose();
  one.dispose();
  expect(calls).toEqual(['subscribe']);
  two.dispose();
  expect(calls).toEqual(['subscribe', 'dispose']);
});

it('names why devices could not be read, until they are', async () => {
  const error = { code: 'internal', message: 'The server failed.', hint: '' };
  let receive: (message: TopicMessage) => void = () => undefined;
  const service = {
    devices: () => Promise.reject(new DistError(error)),
    subscribe: (_: unknown, handler: { receive: (message: TopicMessage) => void }) => {
      ({ receive } = handler);
      return { dispose: () => undefined };
    }
  } as unknown as IService;
  const model = new DevicesModel(service);
  model.watch();
  await expect.poll(() => model.error).toEqual(error);
  receive({ type: 'devices', devices: [], host: {} as IDevices['host'], processes_hidden: false, problems: [] });
  expect(model.error).toBeNull();
  receive({ type: 'error', error, request: { topic: 'devices' } });
  expect([model.error, model.devices?.devices]).toEqual([error, []]); // the last reading is kept
});
