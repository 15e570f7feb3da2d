/** The state of the form for a new group, its validation, and its request. Pure. */
import type { IAccelerator, IDevice, IEnvironment, IGroup, IStartRequest } from '../../services/protocol';

/** Of ranks on the CPU. */
const CPU_BACKENDS: readonly string[] = ['gloo'];

export interface IStartForm {
  readonly name: string;
  readonly environment: string;
  /** `auto`, `cpu`, or the name of an accelerator. */
  readonly accelerator: string;
  /** Indices of the selected devices. */
  readonly devices: readonly number[];
  /** The number of CPU ranks, as typed. */
  readonly ranks: string;
  /** `auto`, or the name of a backend. */
  readonly backend: string;
  readonly cwd: string;
}

/** Problems of a field; the view has the texts. */
export type StartProblem =
  | 'name-taken'
  | 'name-invalid'
  | 'environment-missing'
  | 'environment-unusable'
  | 'devices-none-present'
  | 'devices-none-ticked'
  | 'ranks-invalid'
  | 'backend-not-here';

export type StartProblems = Partial<Record<keyof IStartForm, StartProblem>>;

/** What the form is checked against. */
export interface IStartWorld {
  readonly environments: readonly IEnvironment[];
  readonly devices: readonly IDevice[];
  readonly groups: readonly IGroup[];
}

export const MAX_RANKS = 256;
const NAME = /^[A-Za-z][A-Za-z0-9_.-]*$/;

/** The accelerator whose devices the ranks will be on; null: they will be on the CPU. */
export function acceleratorOf(form: IStartForm, world: IStartWorld): string | null {
  if (form.accelerator !== 'auto') {
    return form.accelerator === 'cpu' ? null : form.accelerator;
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
  } else if (world.groups.some(g => g.name === name && g.state !== 'dead' && g.state !== 'lost')) {
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
  const place = acceleratorOf(form, world) ? deviceProblems(form, world) : rankProblems(form);
  return { ...found, ...place };
}

/** The body of the request, for a form without problems. */
export function startRequest(
  form: IStartForm,
  world: IStartWorld,
  notebook: string | null
): IStartRequest {
  const request: IStartRequest = {
    environment: form.environment,
    accelerator: form.accelerator,
    backend: form.backend
  };
  if (form.name.trim()) {
    request.name = form.name.trim();
  }
  if (acceleratorOf(form, world)) {
    request.devices = tickedDevices(form, world).sort((a, b) => a - b);
  } else {
    request.num_ranks = Number(form.ranks);
  }
  if (form.cwd.trim()) {
    request.cwd = form.cwd.trim();
  } else if (notebook) {
    request.notebook = notebook;
  }
  return request;
}

/** An unused name: "group", "group-2", ... */
export function freeName(groups: readonly IGroup[], base = 'group'): string {
  const taken = new Set(groups.map(group => group.name));
  let name = base;
  for (let i = 2; taken.has(name); i++) {
    name = `${base}-${i}`;
  }
  return name;
}

/** The initial form: the default environment and all devices. */
export function defaultForm(
  world: IStartWorld,
  environment: string | null,
  ranks: number
): IStartForm {
  const usable = world.environments.filter(e => e.problem === null);
  const preferred = usable.find(e => e.name === environment) ?? usable[0];
  return {
    name: freeName(world.groups),
    environment: preferred?.name ?? environment ?? '',
    accelerator: 'auto',
    devices: [...new Set(world.devices.map(device => device.index))],
    ranks: String(ranks),
    backend: 'auto',
    cwd: ''
  };
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

function rankProblems(form: IStartForm): StartProblems {
  const found: StartProblems = {};
  const count = Number(form.ranks);
  if (!Number.isInteger(count) || count < 1 || count > MAX_RANKS) {
    found.ranks = 'ranks-invalid';
  }
  return found;
}
