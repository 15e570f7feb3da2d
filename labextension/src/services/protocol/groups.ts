/** Groups, their ranks, the machine they run on, and what they use of it. */

/** A set of ranks as a canonical expression: "0-3,7". */
export type RankSet = string;

export type GroupState =
  | 'starting'
  | 'ready'
  | 'degraded'
  | 'restarting'
  | 'ending'
  | 'dead'
  /** Its agent lives and does not answer. */
  | 'unresponsive'
  /** Its agent lives and was started by a version that this server does not speak with. */
  | 'incompatible'
  | 'lost';

export type RankState =
  | 'starting'
  | 'importing'
  | 'joining'
  | 'idle'
  | 'busy'
  | 'unresponsive'
  | 'dead';

export interface IErrorBody {
  code: string;
  message: string;
  hint: string;
}

/** An accelerator that an environment's torch was built for. */
export interface IAccelerator {
  /** What a start names, and a device has. */
  name: string;
  /** For people: the same in every language. */
  label: string;
  version: string;
  /** Of its groups; the first is the default. */
  backends: string[];
}

export interface IEnvironment {
  name: string;
  display_name: string;
  python: string;
  source: 'server' | 'kernelspec';
  python_version: string | null;
  torch_version: string | null;
  ipython_version: string | null;
  accelerators: IAccelerator[];
  /** Null, or a sentence on why no group can be started in it. */
  problem: string | null;
}

export interface IRankExit {
  code: number | null;
  signal: string | null;
  reason: string;
  stderr: string;
}

export interface IRank {
  rank: number;
  local_rank: number;
  pid: number | null;
  device: string;
  state: RankState;
  /** When it entered that state. */
  state_at: number;
  execution_id: string | null;
  /** As of its last cell: `none` when user code destroyed it. */
  process_group: 'ok' | 'broken' | 'none';
  exit: IRankExit | null;
  message: string | null;
  /** Asked to stop seconds ago, it still runs its cell; missing from agents of older versions. */
  ignores_interrupt?: boolean;
}

export interface IGroup {
  id: string;
  name: string;
  state: GroupState;
  environment: {
    name: string;
    display_name: string;
    python: string;
    python_version: string | null;
    torch_version: string | null;
  };
  /** `cpu`, or the name of an accelerator. */
  accelerator: string;
  backend: string;
  devices: number[];
  world_size: number;
  cwd: string;
  started_at: number;
  ready_seconds: number | null;
  /** Counts restarts. */
  generation: number;
  /** A sentence for the user. */
  note: string | null;
  /** Why the start failed or the group died. */
  error: IErrorBody | null;
  lease_seconds: number;
  protocol: number;
  ranks: IRank[];
  running: string[];
  queued: string[];
}

/** The body of POST /groups; every field may be left out. */
export interface IStartRequest {
  name?: string;
  environment?: string;
  python?: string;
  accelerator?: string;
  devices?: number[] | number | 'all';
  num_ranks?: number;
  backend?: string;
  cwd?: string;
  notebook?: string;
  env?: Record<string, string>;
}

export interface IDeviceProcess {
  pid: number;
  name: string;
  memory_bytes: number | null;
  group: string | null;
  rank: number | null;
  mine: boolean;
}

export interface IDevice {
  /** Of this accelerator; another one on the same machine counts for itself. */
  index: number;
  accelerator: string;
  name: string;
  uuid: string;
  memory_used_bytes: number | null;
  memory_total_bytes: number | null;
  utilization_percent: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
  power_limit_watts: number | null;
  processes: IDeviceProcess[];
}

export interface IHost {
  cpu_percent: number | null;
  cpu_count: number;
  load_1m: number | null;
  memory_used_bytes: number;
  memory_total_bytes: number;
}

export interface IDevices {
  devices: IDevice[];
  host: IHost;
  processes_hidden?: boolean;
  /** Sentences: which devices cannot be read, and why. */
  problems?: string[];
}

export interface IRankMemory {
  rank: number;
  resident_bytes: number | null;
  allocated_bytes: number | null;
  reserved_bytes: number | null;
  peak_bytes: number | null;
  device_used_bytes: number | null;
  cpu_percent: number | null;
}

export interface IMemorySample {
  at: number;
  ranks: IRankMemory[];
}
