/**
 * The wire types: a mirror of docs/api.md, and nothing else.
 *
 * Field names are the wire's own (snake_case). Times are seconds since the
 * epoch, rank sets are canonical expressions such as "0-3,7".
 */
import type { IOutput } from '@jupyterlab/nbformat';

/** A set of ranks as a canonical expression: "0-3,7". */
export type RankSet = string;

export type GroupState =
  | 'starting'
  | 'ready'
  | 'degraded'
  | 'restarting'
  | 'ending'
  | 'dead'
  | 'lost';

export type RankState =
  | 'starting'
  | 'importing'
  | 'joining'
  | 'idle'
  | 'busy'
  | 'unresponsive'
  | 'dead';

export type ExecutionState =
  | 'queued'
  | 'running'
  | 'ok'
  | 'error'
  | 'interrupted'
  | 'aborted'
  | 'lost';

/** What one rank has to say of an execution. */
export type RankStatus = ExecutionState;

/** The states an execution never leaves. */
export const FINAL_STATES: ReadonlySet<ExecutionState> = new Set([
  'ok',
  'error',
  'interrupted',
  'aborted',
  'lost'
] as const);

export interface IErrorBody {
  code: string;
  message: string;
  hint: string;
}

export interface IEnvironment {
  name: string;
  display_name: string;
  python: string;
  source: 'server' | 'kernelspec';
  python_version: string | null;
  torch_version: string | null;
  ipython_version: string | null;
  cuda: string | null;
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
  exit: IRankExit | null;
  message: string | null;
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
  accelerator: 'cuda' | 'cpu';
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
  accelerator?: 'auto' | 'cuda' | 'cpu';
  devices?: number[] | number | 'all';
  num_ranks?: number;
  backend?: 'auto' | 'nccl' | 'gloo';
  cwd?: string;
  notebook?: string;
  env?: Record<string, string>;
}

export interface IRankStatus {
  ranks: RankSet;
  status: RankStatus;
  seconds: number | null;
}

export interface IExecution {
  id: string;
  group: string;
  ranks: RankSet;
  state: ExecutionState;
  code?: string;
  cell_id: string | null;
  notebook: string | null;
  owner: string | null;
  execution_count: number | null;
  queued_at: number;
  started_at: number | null;
  ended_at: number | null;
  statuses: IRankStatus[];
  error: IErrorBody | null;
}

/** The body of POST .../executions. */
export interface IRunRequest {
  code: string;
  ranks?: string;
  cell_id?: string;
  notebook?: string;
  stop_on_error?: boolean;
  silent?: boolean;
  /** Ranks whose CUDA memory it changed empty their cache when it has ended. */
  empty_cache?: boolean;
  /**
   * The execution before it in a Run All: if that one has failed by now, this
   * one is aborted as if it had been queued in time.
   */
  after?: string;
}

export interface IElided {
  bytes: number;
  lines: number;
}

/** What some ranks said: an nbformat output, or what was left out. */
export interface IViewItem {
  id: number;
  seq: number;
  ranks: RankSet;
  output?: IOutput;
  elided?: IElided;
}

/** An item as a `view` message carries it. */
export interface IViewChange extends IViewItem {
  /** The id of the item before it; null: it is the first. */
  after?: number | null;
  /** Text to add to the item's stream, instead of `output`. */
  append?: string;
}

export interface IView {
  execution: IExecution;
  seq: number;
  items: IViewItem[];
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
  index: number;
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

export interface ILogRecord {
  seq: number;
  at: number;
  rank: number;
  execution_id: string | null;
  execution_count: number | null;
  kind: 'stream' | 'output' | 'begin' | 'end' | 'note';
  /** stream: stdout or stderr. */
  name?: 'stdout' | 'stderr';
  /** stream and note. */
  text?: string;
  /** output. */
  output?: IOutput;
  /** begin. */
  code?: string;
  /** end. */
  status?: RankStatus;
  seconds?: number | null;
}

export interface ILogPage {
  records: ILogRecord[];
  seq: number;
  first: number;
  more: boolean;
}

/** What can be subscribed to; the keys name the subscription. */
export type Topic =
  | { topic: 'execution'; group: string; execution: string }
  | { topic: 'log'; group: string; rank: number }
  | { topic: 'memory'; group: string }
  | { topic: 'devices' };

export interface IViewMessage {
  type: 'view';
  group: string;
  execution_id: string;
  since: number;
  seq: number;
  items: IViewChange[];
  removed?: number[];
  reset?: boolean;
}

export interface IExecutionMessage {
  type: 'execution';
  group: string;
  execution: IExecution;
}

export interface ILogMessage {
  type: 'log';
  group: string;
  rank: number;
  records: ILogRecord[];
  seq: number;
  skipped: number;
}

export interface IMemoryMessage {
  type: 'memory';
  group: string;
  sample: IMemorySample;
}

export interface IDevicesMessage extends IDevices {
  type: 'devices';
}

export interface IErrorMessage {
  type: 'error';
  error: IErrorBody;
  request: Record<string, unknown>;
}

/** What the server sends on the WebSocket. */
export type ServerMessage =
  | { type: 'hello'; server: string }
  | { type: 'groups'; groups: IGroup[] }
  | IExecutionMessage
  | IViewMessage
  | ILogMessage
  | IMemoryMessage
  | IDevicesMessage
  | IErrorMessage;

/** What a subscription may receive. */
export type TopicMessage =
  | IExecutionMessage
  | IViewMessage
  | ILogMessage
  | IMemoryMessage
  | IDevicesMessage
  | IErrorMessage;

/** The MIME type of what a rank cell saves in the notebook. */
export const RANKS_MIME = 'application/vnd.jupyter-dist.ranks+json';

export interface ISavedItem {
  ranks: RankSet;
  output?: IOutput;
  elided?: IElided;
}

/** The MIME bundle of a rank cell. */
export interface IRanksBundle {
  version: 1;
  group: { id: string; name: string; world_size: number };
  execution_id: string;
  ranks: RankSet;
  state: ExecutionState;
  statuses: IRankStatus[];
  started_at: number | null;
  ended_at: number | null;
  items: ISavedItem[];
  /** Why it was lost or aborted. */
  error?: IErrorBody;
}
