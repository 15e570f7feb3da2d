/** The state of the form for a new group, its validation, and its request. Pure. */
import type { IWantedGroup } from '../../tokens';
import type {
  IAccelerator,
  IDevice,
  IEnvironment,
  IGroup,
  ILauncherOption,
  ILauncherStatus,
  IPreset,
  IStartOptionRow,
  IStartRequest
} from '../../services/protocol';
import { freeName, isGone } from './groups';
import { isWrong, type OptionValues, requestedOptions } from './startoptions';
import { isWantedField, readWanted, sizeOf } from './wanted';

/** Of ranks on the CPU. */
const CPU_BACKENDS: readonly string[] = ['gloo'];

export interface IStartForm {
  readonly name: string;
  /** The name of the preset that was chosen last; empty: none. */
  readonly preset: string;
  /** The options that are shown by their rows, and what the preset has for options without a field. */
  readonly more: OptionValues;
  readonly environment: string;
  /** `auto`, `cpu`, or the name of an accelerator. */
  readonly accelerator: string;
  /** Indices of the selected devices. */
  readonly devices: readonly number[];
  /** The number of CPU ranks, or of ranks on each node, as typed: `4`, or `4, 8` for nodes that differ. */
  readonly ranks: string;
  /** `local`, or the name of a launcher for nodes. */
  readonly launcher: string;
  /** The number of nodes, as typed. */
  readonly nodes: string;
  /** Of the launcher, by name, as typed. */
  readonly options: Readonly<Record<string, string>>;
  /** `auto`, or the name of a backend. */
  readonly backend: string;
  readonly cwd: string;
  /** Environment variables, NAME=value, one in a line. */
  readonly env: string;
}

/** What a form is filled in with: the group that a notebook wants. */
export type FilledForm = IWantedGroup & { readonly name: string };

/** Problems of a field; the view has the texts. */
export type StartProblem =
  | 'name-taken'
  | 'name-invalid'
  | 'environment-missing'
  | 'environment-unusable'
  | 'devices-none-present'
  | 'devices-none-ticked'
  | 'ranks-invalid'
  | 'ranks-of-nodes-invalid'
  | 'nodes-invalid'
  | 'launcher-unusable'
  | 'launcher-unknown'
  | 'backend-not-here'
  | 'option-invalid'
  | 'variables-invalid';

export type StartProblems = Partial<Record<keyof IStartForm, StartProblem>>;

/** What the form is checked against. */
export interface IStartWorld {
  readonly environments: readonly IEnvironment[];
  readonly devices: readonly IDevice[];
  readonly groups: readonly IGroup[];
  /** Null until they are known. */
  readonly launchers: readonly ILauncherStatus[] | null;
  /** Empty until they are known, and on servers without any. */
  readonly presets: readonly IPreset[];
  /** Empty until they are known. */
  readonly options: readonly IStartOptionRow[];
}

export const MAX_RANKS = 256;
export const MAX_NODES = 1024;
const LOCAL = 'local';
const NAME = /^[A-Za-z][A-Za-z0-9_.-]*$/;

/** Whether the ranks are to run on nodes that a launcher, or the user, starts. */
export function isOnNodes(form: IStartForm): boolean {
  return form.launcher !== LOCAL;
}

/** The launcher that was chosen; undefined until the launchers are known. */
export function chosenLauncher(form: IStartForm, world: IStartWorld): ILauncherStatus | undefined {
  return world.launchers?.find(({ name }) => name === form.launcher);
}

/** The accelerator whose devices the ranks will be on; null: they will be on the CPU. */
export function acceleratorOf(form: IStartForm, world: IStartWorld): string | null {
  if (form.accelerator !== 'auto' || isOnNodes(form)) {
    // The server does not see the devices of nodes.
    return ['auto', 'cpu'].includes(form.accelerator) ? null : form.accelerator;
  }
  const present = new Set(world.devices.map(device => device.accelerator));
  const environment = chosen(form, world);
  if (environment?.torch_version) {
    return environment.accelerators.find(({ name }) => present.has(name))?.name ?? null;
  }
  // An environment that was not probed yet may have devices.
  return world.devices[0]?.accelerator ?? null;
}

/** The devices that the form offers. */
export function offeredDevices(form: IStartForm, world: IStartWorld): IDevice[] {
  const accelerator = acceleratorOf(form, world);
  return world.devices.filter(device => device.accelerator === accelerator);
}

/** All accelerators that some environment was built for: what can be chosen beside `auto` and `cpu`. */
export function knownAccelerators(world: IStartWorld): IAccelerator[] {
  const all = world.environments.flatMap(environment => environment.accelerators);
  return all.filter((each, i) => all.findIndex(({ name }) => name === each.name) === i);
}

/** The backends of the accelerator that the ranks will be on. */
export function backendsOf(form: IStartForm, world: IStartWorld): readonly string[] {
  const accelerator = acceleratorOf(form, world);
  return knownAccelerators(world).find(({ name }) => name === accelerator)?.backends ?? CPU_BACKENDS;
}

export function problems(form: IStartForm, world: IStartWorld): StartProblems {
  const found: StartProblems = {};
  const name = form.name.trim();
  if (name && !NAME.test(name)) {
    found.name = 'name-invalid';
  } else if (world.groups.some(g => g.name === name && !isGone(g))) {
    found.name = 'name-taken';
  }
  const environment = chosen(form, world);
  if (!environment) {
    found.environment = 'environment-missing';
  } else if (environment.problem) {
    found.environment = 'environment-unusable';
  }
  if (form.backend !== 'auto' && !backendsOf(form, world).includes(form.backend)) {
    found.backend = 'backend-not-here';
  }
  if (readVariables(form.env) === null) {
    found.env = 'variables-invalid';
  }
  if (world.options.some(row => isWrong(row, form.more))) {
    found.more = 'option-invalid';
  }
  if (isOnNodes(form)) {
    return { ...found, ...nodeProblems(form, world) };
  }
  const place = acceleratorOf(form, world) ? deviceProblems(form, world) : rankProblems(form);
  return { ...found, ...place };
}

/** The body of the request, for a form without problems. */
export function startRequest(form: IStartForm, world: IStartWorld, notebook: string | null): IStartRequest {
  const request: IStartRequest = {
    ...requestedOptions(world.options, form.more),
    environment: form.environment,
    accelerator: form.accelerator,
    backend: form.backend
  };
  if (form.name.trim()) {
    request.name = form.name.trim();
  }
  if (isOnNodes(form)) {
    request.launcher = form.launcher;
    request.num_nodes = Number(form.nodes);
    const counts = readCounts(form.ranks);
    request.ranks_per_node = counts.length > 1 ? counts : counts[0];
    const options = givenOptions(form, world);
    if (Object.keys(options).length > 0) {
      request.launcher_options = options;
    }
  } else if (acceleratorOf(form, world)) {
    request.devices = tickedDevices(form, world).sort((a, b) => a - b);
  } else {
    request.num_ranks = Number(form.ranks);
  }
  if (form.cwd.trim()) {
    request.cwd = form.cwd.trim();
  } else if (notebook) {
    request.notebook = notebook;
  }
  const env = readVariables(form.env);
  if (env && Object.keys(env).length > 0) {
    request.env = env;
  }
  return request;
}

/** The initial form: the default environment and all devices. */
export function defaultForm(world: IStartWorld, environment: string | null, ranks: number): IStartForm {
  const usable = world.environments.filter(e => e.problem === null);
  const preferred = usable.find(e => e.name === environment) ?? usable[0];
  return {
    name: freeName(world.groups),
    preset: '',
    more: {},
    environment: preferred?.name ?? environment ?? '',
    accelerator: 'auto',
    devices: [...new Set(world.devices.map(device => device.index))],
    ranks: String(ranks),
    launcher: LOCAL,
    nodes: '2',
    options: {},
    backend: 'auto',
    cwd: '',
    env: ''
  };
}

/** The form with the fields that a notebook sets; other fields stay. */
export function filledForm(form: IStartForm, wanted: FilledForm | null): IStartForm {
  if (!wanted) {
    return form;
  }
  const { name, environment, accelerator, backend, devices, env } = wanted;
  const size = sizeOf(wanted);
  return {
    ...form,
    name,
    environment: environment ?? form.environment,
    accelerator: accelerator ?? form.accelerator,
    backend: backend ?? form.backend,
    devices: Array.isArray(devices) ? devices : form.devices.slice(0, size ?? undefined),
    ranks: size === null ? form.ranks : String(size),
    env: Object.entries(env ?? {})
      .map(([variable, value]) => `${variable}=${value}`)
      .join('\n'),
    ...nodesOf(wanted)
  };
}

/** The form with the options of a preset, and the defaults for others; the name and an earlier choice of devices stay. */
export function presetForm(form: IStartForm, world: IStartWorld, initial: IStartForm, name: string): IStartForm {
  const options = world.presets.find(preset => preset.name === name)?.options ?? {};
  const wanted = options as IWantedGroup & { cwd?: string };
  const more = Object.entries(options).filter(([field]) => field !== 'cwd' && !isWantedField(field));
  return {
    ...filledForm({ ...initial, devices: form.devices }, { ...wanted, name: form.name }),
    preset: name,
    more: Object.fromEntries(more),
    cwd: wanted.cwd ?? initial.cwd
  };
}

/** What an option's field shows: what was typed, else for a switch the administrator's default. */
export function shownOption(form: IStartForm, option: ILauncherOption): string {
  return form.options[option.name] ?? (option.kind === 'flag' ? option.default : '');
}

/** The fields of a group on nodes; none if it is on the server's machine. */
function nodesOf({ launcher, launcher_options, num_nodes, ranks_per_node }: IWantedGroup): Partial<IStartForm> {
  if (launcher === undefined) {
    return {};
  }
  return {
    launcher,
    options: Object.fromEntries(Object.entries(launcher_options ?? {}).map(([name, value]) => [name, asText(value)])),
    ...(num_nodes === undefined ? {} : { nodes: String(num_nodes) }),
    ...(ranks_per_node === undefined ? {} : { ranks: [ranks_per_node].flat().join(', ') })
  };
}

/** An option as it is typed; lists and objects are JSON, which the server reads. */
function asText(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The variables in a text, NAME=value in each line; null if it has something else. */
function readVariables(text: string): Record<string, string> | null {
  const lines = text.split('\n').filter(line => line.trim());
  const pairs = lines.map(line => /^\s*([^=\s]+)=(.*)$/.exec(line));
  if (pairs.some(pair => pair === null)) {
    return null;
  }
  const env = Object.fromEntries(pairs.map(pair => [pair![1], pair![2]]));
  return readWanted({ env }).refused.length === 0 ? env : null;
}

function chosen(form: IStartForm, world: IStartWorld): IEnvironment | undefined {
  return world.environments.find(environment => environment.name === form.environment);
}

function tickedDevices(form: IStartForm, world: IStartWorld): number[] {
  const indices = offeredDevices(form, world).map(device => device.index);
  return indices.filter(index => form.devices.includes(index));
}

function deviceProblems(form: IStartForm, world: IStartWorld): StartProblems {
  if (offeredDevices(form, world).length === 0) {
    return { accelerator: 'devices-none-present' };
  }
  return tickedDevices(form, world).length === 0 ? { devices: 'devices-none-ticked' } : {};
}

/** What was typed into the fields of the chosen launcher. */
function givenOptions(form: IStartForm, world: IStartWorld): Record<string, string> {
  const names = chosenLauncher(form, world)?.options.map(({ name }) => name) ?? [];
  const given = names.map(name => [name, (form.options[name] ?? '').trim()]);
  return Object.fromEntries(given.filter(([, value]) => value !== ''));
}

function nodeProblems(form: IStartForm, world: IStartWorld): StartProblems {
  const found: StartProblems = {};
  const count = Number(form.nodes);
  if (!Number.isInteger(count) || count < 1 || count > MAX_NODES) {
    found.nodes = 'nodes-invalid';
  }
  const counts = readCounts(form.ranks);
  if (!counts.every(isRankCount) || (counts.length > 1 && counts.length !== count)) {
    found.ranks = 'ranks-of-nodes-invalid';
  }
  if (world.launchers === null) {
    found.launcher = 'launcher-unknown';
  } else if (!chosenLauncher(form, world)?.usable) {
    found.launcher = 'launcher-unusable';
  }
  return found;
}

function rankProblems(form: IStartForm): StartProblems {
  const found: StartProblems = {};
  if (!isRankCount(Number(form.ranks))) {
    found.ranks = 'ranks-invalid';
  }
  return found;
}

/** The numbers of ranks that were typed: one for all nodes, or one for each. */
export function readCounts(text: string): number[] {
  return text.split(',').map(Number);
}

/** The changes to a form for a group of that size, on nodes as evenly as possible. */
export function sized(form: IStartForm, size: number): Partial<IStartForm> {
  const count = Math.max(1, Math.min(isOnNodes(form) ? Number(form.nodes) || 1 : 1, size));
  const [each, rest] = [Math.floor(size / count), size % count];
  const counts = Array.from({ length: count }, (_, node) => each + (node < rest ? 1 : 0));
  return { ranks: rest > 0 ? counts.join(', ') : String(each), ...(isOnNodes(form) ? { nodes: String(count) } : {}) };
}

function isRankCount(count: number): boolean {
  return Number.isInteger(count) && count >= 1 && count <= MAX_RANKS;
}
