import { expect, it } from 'vitest';
import type { IDevice, IEnvironment, IGroup, ILauncherStatus, IStartOptionRow } from '../../services/protocol';
import { freeName } from './groups';
import { shownValue } from './startoptions';
import {
  backendsOf,
  defaultForm,
  filledForm,
  IStartWorld,
  knownAccelerators,
  presetForm,
  problems,
  shownOption,
  sized,
  startRequest
} from './startvalues';

const python = { name: 'python3', problem: null, torch_version: '2.13.0', accelerators: [] } as unknown as IEnvironment;
const built = (name: string, label: string) => ({ name, label, version: '1.0', backends: ['nccl', 'gloo'] });
const cuda = { ...python, name: 'cuda', accelerators: [built('cuda', 'CUDA')] };
const rocm = { ...python, name: 'rocm', accelerators: [built('rocm', 'ROCm')] };
const bare = { ...python, name: 'bare', problem: 'It has no torch.' };
const gpu = (index: number, accelerator = 'cuda') => ({ index, accelerator }) as IDevice;
const train = { name: 'train', state: 'ready' } as IGroup;

function world(changes: Partial<IStartWorld> = {}): IStartWorld {
  return {
    environments: [python, cuda, rocm, bare],
    devices: [],
    groups: [train],
    launchers: [],
    presets: [],
    options: [],
    ...changes
  };
}

it('begins with what works', () => {
  const form = defaultForm(world({ environments: [bare, python] }), 'bare', 4);
  expect(form).toMatchObject({ environment: 'python3', ranks: '4', name: 'group' });
  expect(problems(form, world())).toEqual({});
});

it.each([
  [{ name: 'train' }, { name: 'name-taken' }],
  [{ name: '1 x' }, { name: 'name-invalid' }],
  [{ name: '' }, {}],
  [{ environment: 'bare' }, { environment: 'environment-unusable' }],
  [{ environment: 'gone' }, { environment: 'environment-missing' }],
  [{ ranks: '0' }, { ranks: 'ranks-invalid' }],
  [{ ranks: '2.5' }, { ranks: 'ranks-invalid' }],
  [{ ranks: '' }, { ranks: 'ranks-invalid' }],
  [{ backend: 'nccl' }, { backend: 'backend-not-here' }],
  [{ accelerator: 'cuda' }, { accelerator: 'devices-none-present' }]
])('%j gives %j', (changes, expected) => {
  const form = { ...defaultForm(world(), 'python3', 2), ...changes };
  expect(problems(form, world())).toEqual(expected);
});

it('asks for devices where there are any', () => {
  const here = world({ devices: [gpu(0), gpu(1)] });
  const form = { ...defaultForm(here, 'cuda', 2), devices: [1, 0] };
  expect(startRequest(form, here, 'a/b.ipynb')).toEqual({
    name: 'group',
    environment: 'cuda',
    accelerator: 'auto',
    backend: 'auto',
    devices: [0, 1],
    notebook: 'a/b.ipynb'
  });
  expect(problems({ ...form, devices: [] }, here)).toEqual({ devices: 'devices-none-ticked' });
  expect(startRequest({ ...form, environment: 'python3' }, here, null)).toMatchObject({ num_ranks: 2 });
});

it('offers what the environment was built for, where a machine has devices of two kinds', () => {
  const here = world({ devices: [gpu(0), gpu(1), gpu(0, 'rocm')] });
  const form = defaultForm(here, 'rocm', 2);
  expect(startRequest(form, here, null).devices).toEqual([0]);
  expect(startRequest({ ...form, environment: 'cuda' }, here, null).devices).toEqual([0, 1]);
  expect(knownAccelerators(here).map(({ label }) => label)).toEqual(['CUDA', 'ROCm']);
  expect(backendsOf({ ...form, accelerator: 'cpu' }, here)).toEqual(['gloo']);
  expect(problems({ ...form, backend: 'nccl' }, here)).toEqual({});
});

it('finds a free name', () => {
  expect(freeName([train], 'train')).toBe('train-2');
});

const slurm = {
  name: 'slurm',
  usable: true,
  options: [{ name: 'partition' }, { name: 'time_limit' }]
} as ILauncherStatus;

it('asks a launcher for nodes, with the options that were filled in', () => {
  const here = world({ devices: [gpu(0), gpu(1)], launchers: [slurm] });
  const onNodes = {
    ...defaultForm(here, 'cuda', 4),
    launcher: 'slurm',
    options: { partition: ' gpu ', time_limit: '', other: 'x' }
  };
  expect(problems(onNodes, here)).toEqual({});
  expect(startRequest(onNodes, here, null)).toEqual({
    name: 'group',
    environment: 'cuda',
    accelerator: 'auto',
    backend: 'auto',
    launcher: 'slurm',
    num_nodes: 2,
    ranks_per_node: 4,
    launcher_options: { partition: 'gpu' }
  });
  // The devices of this machine do not matter there.
  expect(problems({ ...onNodes, accelerator: 'rocm' }, here)).toEqual({});
  expect(problems({ ...onNodes, nodes: '0', ranks: '' }, here)).toEqual({
    nodes: 'nodes-invalid',
    ranks: 'ranks-of-nodes-invalid'
  });
  const uneven = { ...onNodes, ranks: '1, 3' };
  expect(problems(uneven, here)).toEqual({});
  expect(startRequest(uneven, here, null)).toMatchObject({ num_nodes: 2, ranks_per_node: [1, 3] });
  for (const ranks of ['1, 3, 2', '1,', '1, x', '0, 3']) {
    expect(problems({ ...onNodes, ranks }, here)).toEqual({ ranks: 'ranks-of-nodes-invalid' });
  }
  expect([8, 7, 1].map(size => sized(onNodes, size))).toEqual([
    { nodes: '2', ranks: '4' },
    { nodes: '2', ranks: '4, 3' },
    { nodes: '1', ranks: '1' }
  ]);
  expect(sized(defaultForm(here, 'cuda', 4), 7)).toEqual({ ranks: '7' });
  const down = world({ launchers: [{ ...slurm, usable: false }] });
  expect(problems(onNodes, down)).toEqual({ launcher: 'launcher-unusable' });
  expect(problems(onNodes, world({ launchers: null }))).toEqual({ launcher: 'launcher-unknown' });
});

it('starts a group on nodes again as its notebook wants it', () => {
  const slurm = {
    name: 'slurm',
    usable: true,
    options: [{ name: 'partition' }, { name: 'cpus_per_node' }]
  } as ILauncherStatus;
  const here = world({ launchers: [slurm] });
  const nodes = {
    launcher: 'slurm',
    num_nodes: 3,
    ranks_per_node: 4,
    launcher_options: { partition: 'gpu', cpus_per_node: 2 }
  };
  const form = filledForm(defaultForm(here, null, 2), { name: 'big', accelerator: 'cpu', ...nodes });
  expect(problems(form, here)).toEqual({});
  expect(startRequest(form, here, null)).toMatchObject({
    name: 'big',
    ...nodes,
    launcher_options: { partition: 'gpu', cpus_per_node: '2' }
  });
});

const label = 'Debug queue';
const debug = {
  name: 'debug',
  label,
  description: '',
  problem: null,
  options: {
    launcher: 'slurm',
    num_nodes: 3,
    ranks_per_node: 1,
    env: { A: '1' },
    launcher_options: { partition: 'debug', extra_arguments: ['--switches=1', 'a b'] },
    park_after_seconds: 60
  }
};

it('is filled in by a preset, whose other options are sent as they are', () => {
  const here = world({ launchers: [slurm as ILauncherStatus], presets: [debug] });
  const initial = defaultForm(here, 'python3', 2);
  const form = presetForm({ ...initial, name: 'mine', ranks: '7' }, here, initial, 'debug');
  expect(form).toMatchObject({ name: 'mine', preset: 'debug', launcher: 'slurm', nodes: '3', ranks: '1', env: 'A=1' });
  expect(form.options).toEqual({ partition: 'debug', extra_arguments: '["--switches=1","a b"]' });
  expect(startRequest({ ...form, nodes: '2' }, here, null)).toMatchObject({ num_nodes: 2, park_after_seconds: 60 });
  expect(presetForm(form, here, initial, '')).toEqual({ ...initial, name: 'mine' });
});

it('shows what a preset has for more options, sends what was typed, and is wrong with one out of its limits', () => {
  const park = { name: 'park_after_seconds', kind: 'number', minimum: 0, maximum: 100 } as IStartOptionRow;
  const here = world({ presets: [debug], options: [park] });
  const initial = defaultForm(here, 'python3', 2);
  const form = presetForm(initial, here, initial, 'debug');
  expect(shownValue(park, form.more)).toBe('60');
  const typed = (text: string) => ({ ...form, launcher: 'local', more: { ...form.more, park_after_seconds: text } });
  expect(startRequest(typed('7.5'), here, null)).toMatchObject({ park_after_seconds: 7.5 });
  expect(startRequest(typed(''), here, null)).not.toHaveProperty('park_after_seconds');
  expect(problems(typed('7.5'), here)).toEqual({});
  expect(problems(typed('101'), here)).toEqual({ more: 'option-invalid' });
});

it("shows a switch as the administrator has set it, and sends the user's choice", () => {
  const option = { name: 'requeue', kind: 'flag', default: 'true' } as ILauncherStatus['options'][number];
  const here = world({ launchers: [{ ...slurm, options: [option] } as ILauncherStatus] });
  const form = { ...defaultForm(here, 'python3', 2), launcher: 'slurm' };
  expect(shownOption(form, option)).toBe('true');
  expect(startRequest(form, here, null).launcher_options).toBeUndefined();
  const off = { ...form, options: { requeue: 'false' } };
  expect(startRequest(off, here, null).launcher_options).toEqual({ requeue: 'false' });
});
