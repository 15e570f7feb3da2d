/**
 * The group that a notebook wants: what a start of it needs, saved in the notebook. Pure. A notebook may contain anything,
 * so what is read is validated, and nothing is started, or set, that the user was not shown.
 */
import type { IDevice, IDevices, IGroup, IStartRequest } from '../../services/protocol';
import type { IReadWanted, IWantedGroup } from '../../tokens';
import { firstCharacters, numCharacters } from '../format/characters';
import { countRanks } from '../format/ranks';
import { freeName, isGone } from './groups';

const MAX_RANKS = 256;
const MAX_NODES = 1024;
const LOCAL = 'local';
/** Enough for any notebook, and few enough to be shown. */
export const MAX_VARIABLES = 16;
const MAX_VALUE = 300;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;
/** No control or invisible characters, which would hide what is set. */
const VISIBLE = /^\P{C}*$/u;
const WORD = /^[a-z][a-z0-9_-]{0,30}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;
const UNTITLED = /^untitled\d*$/i;
/** The numbers of CPU ranks that are offered. */
const CPU_SIZES: readonly number[] = [2, 4, 8];

const VALID: { [field in keyof Required<IWantedGroup>]: (value: unknown) => boolean } = {
  num_ranks: value => isCount(value) && value >= 1 && value <= MAX_RANKS,
  devices: isDeviceList,
  environment: value => typeof value === 'string' && value.length > 0 && isShort(value),
  accelerator: value => typeof value === 'string' && WORD.test(value),
  backend: value => typeof value === 'string' && WORD.test(value),
  env: isVariables,
  launcher: value => typeof value === 'string' && WORD.test(value),
  launcher_options: isOptions,
  num_nodes: value => isCount(value) && value >= 1 && value <= MAX_NODES,
  ranks_per_node: value => isRanksOfNode(value) || isRanksOfNodes(value)
};

/** Whether a notebook can want this field of a start: the form has a field that was designed for it. */
export function isWantedField(name: string): boolean {
  return Object.keys(VALID).includes(name);
}

/** The wanted group in the metadata of a notebook. */
export function readWanted(value: unknown): IReadWanted {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { wanted: {}, refused: value === undefined ? [] : ['start'] };
  }
  const fields = value as Record<string, unknown>;
  const known = Object.keys(VALID) as (keyof IWantedGroup)[];
  const given = known.filter(field => fields[field] !== undefined);
  const valid = given.filter(field => VALID[field](fields[field]));
  const refused = Object.keys(fields).filter(field => !(valid as string[]).includes(field));
  return {
    wanted: Object.fromEntries(valid.map(field => [field, fields[field]])) as IWantedGroup,
    refused: refused.slice(0, known.length).map(field => firstCharacters(field, 30))
  };
}

/** The fields for starting a group like this one again, here or on a machine with other devices. */
export function wantedOf(group: IGroup, request: IStartRequest | null, devices: readonly IDevice[]): IWantedGroup {
  const { name } = group.environment;
  return { ...placeOf(group, devices), ...(name ? { environment: name } : {}), ...chosenIn(request) };
}

/** Without an accelerator the ranks are on the machine's devices, or on its CPU if it has too few. */
function placeOf(group: IGroup, present: readonly IDevice[]): IWantedGroup {
  const { accelerator, devices, world_size: size, launcher = LOCAL, nodes = [] } = group;
  if (launcher !== LOCAL && nodes.length > 0) {
    const counts = nodes.map(({ ranks }) => countRanks(ranks));
    const differ = counts.some(count => count !== counts[0]);
    return { launcher, num_nodes: nodes.length, ranks_per_node: differ ? counts : counts[0], accelerator };
  }
  if (accelerator === 'cpu') {
    return { num_ranks: size, ...(present.length > 0 ? { accelerator } : {}) };
  }
  const here = present.filter(device => device.accelerator === accelerator).map(device => device.index);
  const isFirst = devices.every((index, i) => index === here[i]);
  return isFirst ? { num_ranks: size } : { devices: [...devices], accelerator };
}

/** What the user chose and the group's model does not have; a backend that was not chosen is the accelerator's own. */
function chosenIn(request: IStartRequest | null): IWantedGroup {
  const { backend, env, launcher_options } = request ?? {};
  const options = Object.fromEntries(
    Object.entries(launcher_options ?? {}).filter(([name, value]) => isOptions({ [name]: value }))
  );
  return {
    ...(backend && backend !== 'auto' ? { backend } : {}),
    ...(env && isVariables(env) ? { env } : {}),
    ...(Object.keys(options).length > 0 && isOptions(options) ? { launcher_options: options } : {})
  };
}

/** How many ranks it will have; null: as many as there are devices, or the default. */
export function sizeOf({ num_ranks, devices, num_nodes, ranks_per_node }: IWantedGroup): number | null {
  if (Array.isArray(ranks_per_node)) {
    return ranks_per_node.reduce((sum, count) => sum + count, 0);
  }
  if (num_nodes !== undefined && ranks_per_node !== undefined) {
    return num_nodes * ranks_per_node;
  }
  return Array.isArray(devices) ? devices.length : (num_ranks ?? null);
}

/** A free name for the group of a notebook, made of its file's name. */
export function nameFor(path: string, groups: readonly IGroup[]): string {
  const stem = path
    .split('/')
    .pop()!
    .replace(/\.ipynb$/, '')
    .replace(/[^A-Za-z0-9_.-]+/g, '-')
    .slice(0, 32);
  const base = NAME.test(stem) && !UNTITLED.test(stem) ? stem : 'group';
  return freeName(
    groups.filter(group => !isGone(group)),
    base
  );
}

/** A name that the server accepts; a file may contain anything. */
export function isName(name: string): boolean {
  return NAME.test(name);
}

/** The numbers of ranks that are offered: as far as there are devices, or for a CPU the usual ones. */
export function offeredSizes(machine: IDevices | null): readonly number[] {
  const count = deviceCount(machine);
  return count === 0 ? CPU_SIZES : [...CPU_SIZES.filter(size => size < count), count];
}

/** As many ranks as the machine is made for: its devices, else its cores, at most 8. */
export function fittingSize(machine: IDevices | null): number {
  const cores = Math.min(8, machine?.host.cpu_count ?? 2);
  return deviceCount(machine) || Math.max(2, 2 ** Math.floor(Math.log2(cores)));
}

/** Of the accelerator that the server chooses: the first one. */
function deviceCount(machine: IDevices | null): number {
  const devices = machine?.devices ?? [];
  return devices.filter(device => device.accelerator === devices[0].accelerator).length;
}

function isRanksOfNode(value: unknown): boolean {
  return isCount(value) && value >= 1 && value <= MAX_RANKS;
}

/** The number of each node. */
function isRanksOfNodes(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_NODES && value.every(isRanksOfNode);
}

function isDeviceList(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_RANKS &&
    value.every(isCount) &&
    new Set(value).size === value.length
  );
}

function isVariables(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return false;
  }
  const entries = Object.entries(value);
  return entries.length <= MAX_VARIABLES && entries.every(([name, text]) => VARIABLE.test(name) && isShort(text));
}

/** Options whose values are programs, or arguments of programs: a notebook does not bring them. */
const RUNS: readonly string[] = [
  'prologue',
  'command_prefix',
  'tunnel',
  'container',
  'container_python',
  'container_arguments',
  'container_mounts',
  'srun_arguments',
  'extra_arguments'
];

/** Words, numbers and switches; nothing that begins like an argument, which an engine could take for a command to run. */
function isOptions(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return false;
  }
  const entries = Object.entries(value);
  const isWord = (text: unknown): boolean => isShort(text) && !/^\s*-/.test(text as string);
  const isPlain = (option: unknown): boolean =>
    typeof option === 'boolean' || Number.isSafeInteger(option) || isWord(option);
  return (
    entries.length <= MAX_VARIABLES &&
    entries.every(([name, option]) => VARIABLE.test(name) && !RUNS.includes(name) && isPlain(option))
  );
}

function isShort(value: unknown): boolean {
  return typeof value === 'string' && numCharacters(value) <= MAX_VALUE && VISIBLE.test(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
