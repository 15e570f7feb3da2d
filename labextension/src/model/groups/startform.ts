/** What the form for a new group holds, what is wrong with it, and the request it makes. Pure. */
import type { IDevice, IEnvironment, IGroup, IStartRequest } from '../../services/protocol';

export type Accelerator = 'auto' | 'cuda' | 'cpu';
export type Backend = 'auto' | 'nccl' | 'gloo';

export interface IStartForm {
  readonly name: string;
  readonly environment: string;
  readonly accelerator: Accelerator;
  /** Indices of the devices ticked. */
  readonly devices: readonly number[];
  /** The number of CPU ranks, as typed. */
  readonly ranks: string;
  readonly backend: Backend;
  readonly cwd: string;
}

/** What may be wrong with a field; the view has the words. */
export type StartProblem =
  | 'name-taken'
  | 'name-invalid'
  | 'environment-missing'
  | 'environment-unusable'
  | 'devices-none-present'
  | 'devices-none-ticked'
  | 'ranks-invalid'
  | 'backend-needs-cuda';

export type StartProblems = Partial<Record<keyof IStartForm, StartProblem>>;

/** What the form is checked against. */
export interface IStartWorld {
  readonly environments: readonly IEnvironment[];
  readonly devices: readonly IDevice[];
  readonly groups: readonly IGroup[];
}

export const MAX_RANKS = 256;
const NAME = /^[A-Za-z][A-Za-z0-9_.-]*$/;

/** Whether the ranks will be on devices. */
export function usesDevices(form: IStartForm, world: IStartWorld): boolean {
  return form.accelerator === 'cuda' || (form.accelerator === 'auto' && hasCuda(form, world));
}

export function problems(form: IStartForm, world: IStartWorld): StartProblems {
  const found: StartProblems = {};
  const name = form.name.trim();
  if (name && !NAME.test(name)) {
    found.name = 'name-invalid';
  } else if (world.groups.some(g => g.name === name && g.state !== 'dead' && g.state !== 'lost')) {
    found.name = 'name-taken';
  }
  const environment = world.environments.find(e => e.name === form.environment);
  if (!environment) {
    found.environment = 'environment-missing';
  } else if (environment.problem) {
    found.environment = 'environment-unusable';
  }
  const place = usesDevices(form, world) ? deviceProblems(form, world) : rankProblems(form);
  return { ...found, ...place };
}

/** The body of the request. Only call it on a form without problems. */
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
  if (usesDevices(form, world)) {
    request.devices = [...form.devices].sort((a, b) => a - b);
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

/** A name nobody has: "group", "group-2", ... */
export function freeName(groups: readonly IGroup[], base = 'group'): string {
  const taken = new Set(groups.map(group => group.name));
  let name = base;
  for (let i = 2; taken.has(name); i++) {
    name = `${base}-${i}`;
  }
  return name;
}

/** A first form: the default environment and all devices. */
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
    devices: world.devices.map(device => device.index),
    ranks: String(ranks),
    backend: 'auto',
    cwd: ''
  };
}

function hasCuda(form: IStartForm, world: IStartWorld): boolean {
  const environment = world.environments.find(e => e.name === form.environment);
  // An environment whose torch was not asked yet does not forbid devices.
  const built = environment?.torch_version ? environment.cuda !== null : true;
  return world.devices.length > 0 && built;
}

function deviceProblems(form: IStartForm, world: IStartWorld): StartProblems {
  if (world.devices.length === 0) {
    return { accelerator: 'devices-none-present' };
  }
  return form.devices.length === 0 ? { devices: 'devices-none-ticked' } : {};
}

function rankProblems(form: IStartForm): StartProblems {
  const found: StartProblems = {};
  const count = Number(form.ranks);
  if (!Number.isInteger(count) || count < 1 || count > MAX_RANKS) {
    found.ranks = 'ranks-invalid';
  }
  if (form.backend === 'nccl') {
    found.backend = 'backend-needs-cuda';
  }
  return found;
}
