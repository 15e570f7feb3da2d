import { expect, it } from 'vitest';
import type { IDevice, IDevices, IGroup } from '../../services/protocol';
import { fittingSize, MAX_VARIABLES, nameFor, offeredSizes, readWanted, sizeOf, wantedOf } from './wanted';

const gpu = (index: number, accelerator = 'cuda') => ({ index, accelerator }) as IDevice;
const machine = (devices: IDevice[], cpu_count = 2) => ({ devices, host: { cpu_count } }) as IDevices;
const group = (more: object) =>
  ({
    name: 'train',
    state: 'ready',
    accelerator: 'cpu',
    backend: 'gloo',
    devices: [],
    world_size: 8,
    environment: {},
    ...more
  }) as unknown as IGroup;
const eight = [...Array(8).keys()].map(index => gpu(index));

it('keeps what starts a group like this one again, here or on another machine', () => {
  expect(wantedOf(group({ environment: { name: 'torch' } }), null, [])).toEqual({ num_ranks: 8, environment: 'torch' });
  // On a machine with devices the ranks were on the CPU by choice.
  expect(wantedOf(group({}), null, eight)).toEqual({ num_ranks: 8, accelerator: 'cpu' });
  const cuda = { accelerator: 'cuda', backend: 'nccl', world_size: 2 };
  expect(wantedOf(group({ ...cuda, devices: [0, 1] }), null, eight)).toEqual({ num_ranks: 2 });
  expect(wantedOf(group({ ...cuda, devices: [2, 3] }), null, eight)).toEqual({ devices: [2, 3], accelerator: 'cuda' });
  expect(
    wantedOf(group({ ...cuda, backend: 'gloo', devices: [0, 1] }), { env: { A: 'b' }, backend: 'gloo' }, eight)
  ).toEqual({
    num_ranks: 2,
    backend: 'gloo',
    env: { A: 'b' }
  });
});

it('keeps the launcher of a group on nodes, and what it was asked for', () => {
  const onNodes = group({
    launcher: 'slurm',
    nodes: [{ ranks: '0-3' }, { ranks: '4-7' }],
    accelerator: 'cuda',
    backend: 'nccl',
    world_size: 8
  });
  const options = { partition: 'gpu', cpus_per_node: 4, requeue: true };
  const wanted = wantedOf(onNodes, { launcher_options: { ...options, extra_arguments: '--exclusive' } }, []);
  expect(wanted).toEqual({
    launcher: 'slurm',
    num_nodes: 2,
    ranks_per_node: 4,
    accelerator: 'cuda',
    launcher_options: options
  });
  expect(sizeOf(wanted)).toBe(8);
  expect(readWanted(JSON.parse(JSON.stringify(wanted)))).toEqual({ wanted, refused: [] });
  const differ = { launcher: 'slurm', nodes: [{ ranks: '0' }, { ranks: '1-3' }], world_size: 4 };
  const uneven = wantedOf(group(differ), null, []);
  expect(uneven).toMatchObject({ num_nodes: 2, ranks_per_node: [1, 3] });
  expect(sizeOf(uneven)).toBe(4);
  expect(readWanted(JSON.parse(JSON.stringify(uneven))).refused).toEqual([]);
  // A group on the server's machine asks for none.
  expect(wantedOf(group({ launcher: 'local', nodes: [] }), null, [])).toEqual({ num_ranks: 8 });
});

it('reads back what it writes', () => {
  for (const wanted of [
    { num_ranks: 8, environment: 'torch', env: { NCCL_DEBUG: 'INFO' } },
    { devices: [2, 3], accelerator: 'cuda' }
  ]) {
    expect(readWanted(JSON.parse(JSON.stringify(wanted)))).toEqual({ wanted, refused: [] });
  }
  expect(readWanted(undefined)).toEqual({ wanted: {}, refused: [] });
  expect(sizeOf({ devices: [2, 3] })).toBe(2);
});

it.each([
  ['a string', 'start'],
  [[1], 'start'],
  [{ num_ranks: 1e9 }, 'num_ranks'],
  [{ num_ranks: '8' }, 'num_ranks'],
  [{ devices: 'all' }, 'devices'],
  [{ devices: [0, 0] }, 'devices'],
  [{ python: '/tmp/evil/bin/python' }, 'python'],
  [{ cwd: '/root' }, 'cwd'],
  [{ environ: 'LD_PRELOAD=/tmp/x.so\0' }, 'environ'],
  [{ environment: 'torch\u202e' }, 'environment'],
  [{ env: { 'A B': '1' } }, 'env'],
  [{ env: { A: 'x'.repeat(1000) } }, 'env'],
  [{ env: { A: 'seen\u200bunseen' } }, 'env'],
  [{ env: { A: 'one\nB=two' } }, 'env'],
  [{ env: { A: 1 } }, 'env'],
  [{ launcher: '../x' }, 'launcher'],
  [{ num_nodes: 0 }, 'num_nodes'],
  [{ ranks_per_node: 1e9 }, 'ranks_per_node'],
  [{ ranks_per_node: [] }, 'ranks_per_node'],
  [{ ranks_per_node: [4, 0] }, 'ranks_per_node'],
  [{ launcher_options: ['a'] }, 'launcher_options'],
  [{ launcher_options: { extra_arguments: ' --task-prolog=/tmp/x' } }, 'launcher_options'],
  [{ launcher_options: { prologue: 'curl example.org' } }, 'launcher_options'],
  [{ launcher_options: { extra_arguments: ['--task-prolog=/tmp/x'] } }, 'launcher_options'],
  [{ launcher_options: { partition: 'gpu\u202e' } }, 'launcher_options'],
  [{ env: Object.fromEntries([...Array(MAX_VARIABLES + 1).keys()].map(i => [`A${i}`, ''])) }, 'env']
])('takes nothing from a hostile notebook that it could not show: %j', (start, field) => {
  expect(readWanted(start)).toEqual({ wanted: {}, refused: [field] });
});

it('names a group after its notebook', () => {
  expect(nameFor('a/train.ipynb', [])).toBe('train');
  expect(nameFor('train.ipynb', [group({})])).toBe('train-2');
  expect(nameFor('train.ipynb', [group({ state: 'dead' })])).toBe('train');
  expect(nameFor('Untitled3.ipynb', [])).toBe('group');
  expect(nameFor('My first run.ipynb', [])).toBe('My-first-run');
  expect(nameFor('\u8a13\u7df4.ipynb', [])).toBe('group');
});

it('offers numbers that fit the machine', () => {
  expect(offeredSizes(null)).toEqual([2, 4, 8]);
  expect(offeredSizes(machine(eight.slice(0, 3)))).toEqual([2, 3]);
  expect(offeredSizes(machine([...eight, gpu(0, 'rocm')]))).toEqual([2, 4, 8]);
  expect(offeredSizes(machine([gpu(0)]))).toEqual([1]);
  expect([null, machine([], 2), machine([], 6), machine([], 96), machine(eight)].map(fittingSize)).toEqual([
    2, 2, 4, 8, 8
  ]);
});
