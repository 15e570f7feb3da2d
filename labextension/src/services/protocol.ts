/**
 * What travels between the server and its clients. Made by `make generate` from jupyter_dist/protocol: edit that.
 *
 * Field names are the wire's own (snake_case). Times are seconds since the epoch.
 */
/* eslint-disable */
import type { IOutput } from '@jupyterlab/nbformat';

/** A set of ranks as a canonical expression: "0-3,7". */
export type RankSet = string;

export type GroupState = 'starting' | 'ready' | 'degraded' | 'restarting' | 'resizing' | 'parking' | 'parked' | 'resuming' | 'ending' | 'dead' | 'unresponsive' | 'incompatible' | 'lost';

export type RankState = 'starting' | 'importing' | 'joining' | 'idle' | 'busy' | 'unresponsive' | 'dead';

export type ExecutionState = 'queued' | 'running' | 'ok' | 'error' | 'interrupted' | 'aborted' | 'lost';

/** The states that an execution never leaves. */
export const FINAL_STATES: ReadonlySet<ExecutionState> = new Set(['ok', 'error', 'interrupted', 'aborted', 'lost'] as const);

/** The MIME type of what a rank cell saves in the notebook. */
export const RANKS_MIME = 'application/vnd.jupyter-dist.ranks+json';

/** A sentence: its template, and its values for `%1`, `%2` and so on. */
export interface IWords {
  /** In English, as in the page's catalogues. */
  text: string;
  /** The template for other numbers than one; the number is the first value. */
  plural: string | null;
  /** Each a text, a number, or a list of such sentences. */
  values: unknown[];
}

/** An error: a stable code, one sentence, and a hint on what to do. */
export interface IErrorBody {
  code: string;
  message: string;
  /** The message for other languages. */
  message_words?: IWords[] | null;
  hint: string;
  hint_words?: IWords[] | null;
}

/** The body of every error response. */
export interface IErrorAnswer {
  error: IErrorBody;
}

/** An accelerator that an environment's torch was built for. */
export interface IAccelerator {
  /** The name in start requests and devices. */
  name: string;
  /** The display name, the same in every language. */
  label: string;
  version: string;
  /** Backends for its groups; the first is the default. */
  backends: string[];
}

/** A Python in which groups can be started. */
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
  problem_words?: IWords[] | null;
}

/** The environment that a group was started in; empty if its agent cannot be reached and did not store it. */
export interface IGroupEnvironment {
  name?: string;
  display_name?: string;
  python?: string;
  python_version?: string | null;
  torch_version?: string | null;
}

/** How a rank's process ended. */
export interface IRankExit {
  /** The exit code; null if a signal ended it, or it never began. */
  code: number | null;
  /** The number of the signal that ended it. */
  signal: number | null;
  reason: string;
  reason_words?: IWords[] | null;
  /** The last lines of its stderr. */
  stderr: string;
  /** Its peak resident memory. */
  peak_bytes?: number | null;
}

/** Where JupyterLab's debugger has stopped the cell of a rank. */
export interface IDebuggerStop {
  line: number;
  /** Null: the running cell. Otherwise a file, or a cell: cell [5]. */
  file: string | null;
}

/** One rank of a group. */
export interface IRank {
  rank: number;
  local_rank: number;
  /** On several machines: the node that it runs on. */
  node?: number | null;
  pid: number | null;
  device: string;
  state: RankState;
  /** When it entered that state. */
  state_at: number;
  execution_id: string | null;
  /** After its last cell; `none`: code destroyed it; `lost`: the rank's device is lost. */
  process_group: 'ok' | 'broken' | 'none' | 'lost';
  exit: IRankExit | null;
  message: string | null;
  message_words?: IWords[] | null;
  /** Its cell still runs seconds after an interrupt. */
  ignores_interrupt?: boolean;
  /** Its cell asks for input, and waits. */
  asks?: boolean;
  /** Its cell is stopped in JupyterLab's debugger. */
  stopped_at?: IDebuggerStop;
  /** From when to when it had no process. */
  absences?: number[][];
  /** From when to when it has the values of cells that ran in an earlier process: of a save, or copied. */
  covered?: number[][];
  /** When a resize added it, with copies of what all others had alike. */
  since?: number;
}

/** A device of a node. */
export interface INodeDevice {
  /** The machine's index; null of a part of a device. */
  index: number | null;
  name: string;
  uuid: string | null;
  /** The device's total memory. */
  memory_bytes: number | null;
}

/** One machine of a group over several machines. */
export interface INode {
  /** Its number, torchrun's GROUP_RANK. */
  node: number;
  /** The name of the machine; null until its agent has joined. */
  host: string | null;
  /** `waiting`: its agent has not joined. `unreachable`: the link is lost. `gone`: it ended, and its ranks. */
  state: 'waiting' | 'joined' | 'unreachable' | 'gone';
  message: string | null;
  message_words?: IWords[] | null;
  ranks: RankSet;
  /** The address with which it reaches the head. */
  address: string | null;
  /** The network interface that its ranks use, unless `env` names another one. */
  interface: string | null;
  /** The devices that its engine, or its user, has given it. Of NVIDIA. */
  devices?: INodeDevice[];
  /** The memory of the machine. */
  memory_bytes?: number | null;
}

/** The nodes that a launcher has asked its engine for, for one group. */
export interface IAllocation {
  launcher: string;
  /** `not_known`: the engine does not answer; the nodes may run all the same. */
  state: 'queued' | 'allocated' | 'not_known' | 'ended';
  /** A sentence: why it waits, which nodes it has, why it has ended. */
  text: string;
  text_words?: IWords[] | null;
  job_id: string | null;
  hosts: string[];
  /** When the engine expects it to start. */
  eta: number | null;
  /** False: it waits in vain, because the engine will not start it as it was submitted. */
  can_start: boolean;
  /** When the engine ends it: its time limit. */
  ends_at: number | null;
  /** What is about to happen, such as the end of the time limit. */
  warning: string | null;
  warning_words?: IWords[] | null;
}

/** What ends a group besides a request. */
export interface IEndsWith {
  /** The processes that it ends with, as far as they run. */
  owners: number[];
  /** How long it outlives the last of them. */
  grace_seconds: number;
  /** When it ends, because the last of them has ended. */
  at: number | null;
}

/** A replacement of dead ranks. */
export interface IReplace {
  /** When it began. */
  at: number;
  /** Which ranks were dead. */
  ranks: RankSet;
  /** The variables that they were to begin with. `empty`: nothing. `copy`: copies of what the other ranks have alike, of the lowest one. `save`: their variables in a save; cells that ran since can be run again on them. `undo`: the other ranks undo the cell in which these died, and give them copies as `copy`. */
  state: 'empty' | 'copy' | 'save' | 'undo';
  /** The name of the save. */
  save: string | null;
  /** How long it took; null while it is under way. */
  seconds: number | null;
  /** Why they could not be started, or do not have these variables. */
  error: IErrorBody | null;
  /** The names that they were given. */
  names: string[];
  /** Sentences on missing names, which cells must make again. */
  again: string[];
}

/** A group of ranks. */
export interface IGroup {
  id: string;
  name: string;
  state: GroupState;
  environment: IGroupEnvironment;
  accelerator: string;
  backend: string;
  devices: number[];
  world_size: number;
  cwd: string;
  started_at: number | null;
  ready_seconds: number | null;
  /** Counts restarts. */
  generation: number;
  /** The last replacement of dead ranks, or the one under way. */
  replaced?: IReplace | null;
  /** A sentence for the user. */
  note: string | null;
  note_words?: IWords[] | null;
  /** Why the start failed or the group died. */
  error: IErrorBody | null;
  lease_seconds: number | null;
  /** The processes that it ends with; null: it outlives all. */
  ends_with?: IEndsWith | null;
  /** The protocol version of its agent. */
  protocol: number;
  ranks: IRank[];
  /** What starts its node agents; `local`: there are none. */
  launcher?: string;
  /** Its machines; empty for a group on the server's machine alone. */
  nodes?: INode[];
  /** Machines without ranks, since the group was resized: it can grow there. */
  spare_nodes?: INode[];
  /** The command to run on each machine that is missing; null if none is. */
  join?: string | null;
  /** Of its nodes; null without an engine. */
  allocation?: IAllocation | null;
  /** What features add, by their names. */
  parts?: Record<string, unknown>;
  /** Executions. */
  running: string[];
  /** Executions. */
  queued: string[];
  /** Where its memory is; null unless it is parked. */
  parked?: IParkedState | null;
  /** The last change of its size, or the one under way. */
  resized?: IResize | null;
  /** Null: it is saved on request alone. */
  self_saving?: ISelfSaving | null;
  /** The newest save of a group with its name that it can restore, also after its end; or null. */
  last_save?: ILastSave | null;
}

/** The status of an execution on some ranks. */
export interface IRanksStatus {
  ranks: RankSet;
  status: ExecutionState;
  /** Of the slowest rank; null until they have ended. */
  seconds: number | null;
}

/** A verdict on a cell, and what happened afterwards. */
export interface IVerdictRecord {
  execution_id: string;
  /** `cannot_end`, or the kind of a cause that a part has found. */
  kind: string;
  message: string;
  /** The message for other languages. */
  message_words?: IWords[] | null;
  shown_at: number;
  /** `refuted`: the cell ended or went on by itself, or the cause was gone at once. `open`: it still holds. `not_refuted`: anything else, as after an interrupt. */
  outcome: 'open' | 'refuted' | 'not_refuted';
  /** What was known of each rank, or measured, when it was shown. */
  witnesses: string[];
  /** Of each of these sentences. */
  witnesses_words?: (IWords[] | null)[];
}

/** The verdicts on the cells of a group since its agent was started, and how many were wrong. */
export interface IVerdicts {
  /** How many verdicts there were. */
  shown: number;
  refuted: number;
  /** The last 50, oldest first. */
  verdicts: IVerdictRecord[];
}

/** A line that a rank is at, or a call that led there. */
export interface IStackFrame {
  file: string;
  /** The file's name for users: cell [5], model.py. */
  name: string;
  line: number;
  function: string;
  code: string;
  /** Whether it is neither a cell nor a module of the user. */
  is_library: boolean;
}

/** What ranks do that have the same stack. */
export interface IRankStack {
  ranks: RankSet;
  state: 'waits' | 'runs' | 'idle' | 'dead' | 'unknown';
  /** The collective that they wait in. */
  call: string | null;
  call_words?: IWords[] | null;
  /** From the cell inwards, at most 50; empty for idle ranks. */
  frames: IStackFrame[];
}

/** The Python stacks of the main threads of all ranks. */
export interface IStacks {
  stacks: IRankStack[];
}

/** What the code of some ranks asks for; it waits for the answer. */
export interface IInputPrompt {
  /** The ranks that ask the same. */
  ranks: RankSet;
  prompt: string;
  /** Whether the answer must not be shown. */
  password: boolean;
  /** When the first of them asked. */
  since: number;
  /** Counts questions: an answer with this number answers none that came later. */
  seq: number;
}

/** Which ranks took an answer. */
export interface IInputAnswered {
  answered: RankSet;
  /** Ranks that were named and ask for nothing, or for something else by now. */
  not_asking: RankSet;
}

/** A message to a widget was taken. */
export interface ICommTaken {
  /** Whether its rank runs a cell, and handles the message afterwards. */
  waits: boolean;
}

/** One cell that is queued, running or done on a set of ranks. */
export interface IExecution {
  id: string;
  group: string;
  ranks: RankSet;
  state: ExecutionState;
  cell_id: string | null;
  notebook: string | null;
  owner: string | null;
  execution_count: number | null;
  queued_at: number;
  started_at: number | null;
  ended_at: number | null;
  statuses: IRanksStatus[];
  /** By rank, for ranks that have ended. */
  rank_seconds: Record<string, number>;
  /** By rank; none of little change. */
  rank_memory?: Record<string, ICellMemory>;
  /** How many ranks the group had when it began. */
  num_ranks?: number;
  silent: boolean;
  error: IErrorBody | null;
  /** Not in lists. */
  code?: string | null;
  /** In lists, instead of the code: the first line. */
  line?: string | null;
  /** CRC-32 of its code in UTF-8, in hexadecimal. */
  code_checksum?: string;
  /** What a queued cell waits for: a running cell, or a cell queued before it. */
  waits_for?: string | null;
  /** It calls what all ranks must call, and was sent to some. */
  warning?: string | null;
  /** What is about to happen to the group's nodes now, and which are lost. */
  notices?: string[];
  /** When it was undone: it does not count any more. */
  undone_at?: number;
  /** The questions of its ranks, while they wait for an answer. */
  asking?: IInputPrompt[];
  /** What is wrong with the training in it, while it holds; the worst first. */
  checks?: ICheck[];
  /** Why it does not end, while ranks wait for each other. */
  verdict?: IVerdict | null;
  /** How far it is, if it saves or restores the ranks. */
  transfer?: ITransfer;
  /** Why it is slow, while it runs; the costliest first, at most 3. */
  slowness?: ISlowCause[];
  /** Where its time went, of an ended cell that was watched. Not in lists. */
  pace?: IPace;
  /** If it was run with `keep_undo`. */
  undo?: IUndoCost;
}

/** A line of the user's code. */
export interface ICodeLine {
  file: string;
  /** The file's name for users: cell [5], model.py. */
  name: string;
  line: number;
  code: string;
}

/** What was found about a cell, in one sentence, with what proves it and what to do. */
export interface ICellFinding {
  /** The ranks that it is about. */
  ranks: RankSet;
  /** What was seen, on which ranks and where, and what follows from it. */
  message: string;
  /** The message for other languages. */
  message_words?: IWords[] | null;
  /** What was measured or compared, a sentence each. */
  evidence: string[];
  /** Of each sentence of the evidence. */
  evidence_words?: (IWords[] | null)[];
  /** What to do. */
  advice: string;
  advice_words?: IWords[] | null;
  /** When it was found first, in seconds since the epoch. */
  since: number;
}

/** How much is left out of a view; it is in the log. */
export interface IElided {
  bytes: number;
  lines: number;
}

/** An output of some ranks, or what was left out. */
export interface IViewItem {
  id: number;
  seq: number;
  ranks: RankSet;
  output?: IOutput;
  elided?: IElided;
}

/** An item in a `view` message. */
export interface IViewChange {
  id: number;
  seq: number;
  ranks: RankSet;
  output?: IOutput;
  elided?: IElided;
  /** The id of the item before it; null if it is the first. */
  after?: number | null;
  /** Text to add to the item's stream, instead of `output`. */
  append?: string;
}

/** An execution and the folded output of its ranks. */
export interface IView {
  execution: IExecution;
  seq: number;
  items: IViewItem[];
}

/** The group that a saved cell ran on. */
export interface ISavedGroup {
  id: string;
  name: string;
  world_size: number;
}

/** An item of a saved cell. */
export interface ISavedItem {
  ranks: RankSet;
  output?: IOutput;
  elided?: IElided;
  /** Instead of `output`: the cell's output so many after the bundle's has it. */
  part?: number;
}

/** The MIME bundle of a rank cell. */
export interface IRanksBundle {
  version: 1;
  group: ISavedGroup;
  execution_id: string;
  ranks: RankSet;
  state: ExecutionState;
  statuses: IRanksStatus[];
  started_at: number | null;
  ended_at: number | null;
  items: ISavedItem[];
  /** Why it was lost or aborted. */
  error?: IErrorBody | null;
  /** Of the cell as it ran, if it ran without magics. */
  code_checksum?: string;
  /** Why it does not end, while it runs in a kernel or a shared notebook. */
  verdict?: IVerdict | null;
}

/** One entry of a rank's log; its kind decides which of the last fields it has. */
export interface ILogRecord {
  seq: number;
  at: number;
  rank: number;
  execution_id: string | null;
  execution_count: number | null;
  kind: 'stream' | 'output' | 'begin' | 'end' | 'note';
  /** Of a `stream`. */
  name?: 'stdout' | 'stderr';
  /** Of a `stream` or a `note`. */
  text?: string;
  /** Of an `output`. */
  output?: IOutput;
  /** Of a `begin`. */
  code?: string;
  /** Of a `begin`. */
  notebook?: string | null;
  /** Of a `begin`. */
  cell_id?: string | null;
  /** Of an `end`. */
  status?: ExecutionState;
  /** Of an `end`. */
  seconds?: number | null;
}

/** A part of a rank's log. */
export interface ILogPage {
  records: ILogRecord[];
  /** Of the last record. */
  seq: number;
  /** Of the first record; pass it as `before` to get older ones. */
  first: number | null;
  /** Whether there are older records. */
  more: boolean;
}

/** The versions of the server. */
export interface IVersions {
  jupyter_dist: string;
  protocol: number;
  api: number;
}

/** All environments, and the default for a start. */
export interface IEnvironments {
  environments: IEnvironment[];
  default: string;
}

/** An answer without fields. */
export interface INothing {
}

/** All groups, oldest first. */
export interface IGroups {
  groups: IGroup[];
}

/** A sentence for each process that had to be killed. */
export interface IShutdown {
  killed: string[];
}

/** The ranks that were running a cell. */
export interface IInterrupted {
  interrupted: RankSet;
  idle: RankSet;
  unresponsive?: RankSet;
}

/** The freed bytes, by rank. */
export interface IFreedBytes {
  freed_bytes: Record<string, number>;
}

/** The executions of a group, newest last. */
export interface IExecutions {
  executions: IExecution[];
}

/** A process on a device; the processes of other users are one entry without a name. */
export interface IDeviceProcess {
  pid: number | null;
  name: string | null;
  memory_bytes: number | null;
  group: string | null;
  rank: number | null;
  mine: boolean;
}

/** An accelerator; null where it does not report a value. */
export interface IDevice {
  accelerator: string;
  index: number;
  name: string | null;
  uuid: string | null;
  memory_used_bytes: number | null;
  memory_total_bytes: number | null;
  utilization_percent: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
  power_limit_watts: number | null;
  processes: IDeviceProcess[];
}

/** The machine that the server runs on. */
export interface IHost {
  cpu_percent: number;
  cpu_count: number;
  load_1m: number;
  memory_used_bytes: number;
  memory_total_bytes: number;
}

/** Devices and host. */
export interface IDevices {
  devices: IDevice[];
  host: IHost;
  /** Whether other users have processes on the devices. */
  processes_hidden: boolean;
  /** A sentence for each kind of device that could not be read. */
  problems: string[];
}

/** A process that is kept to make the next start faster; it ends when memory is short. */
export interface IPreparedProcess {
  /** `forkserver`, or `agent`: an agent that waits for its group, with its zygote. */
  what: string;
  pid: number;
  /** Memory that n processes share counts as an n-th for each of them. */
  memory_bytes: number;
}

/** What is kept to make the next start faster. */
export interface IPrepared {
  processes: IPreparedProcess[];
}

/** The memory of one rank; null where its device has no such value. */
export interface IRankMemory {
  rank: number;
  resident_bytes: number;
  allocated_bytes: number | null;
  reserved_bytes: number | null;
  peak_bytes: number | null;
  device_used_bytes: number | null;
  cpu_percent: number;
}

/** Where some ranks were that ran a cell. */
export interface IRanksSeen {
  ranks: RankSet;
  execution_id: string;
  /** The user's line; empty where there is none. */
  place: string;
  /** The collective that they waited in: its name, process group, number, shape. */
  call: string | null;
}

/** The memory of all ranks of a group at one moment. */
export interface IMemorySample {
  at: number;
  ranks: IRankMemory[];
  /** If the agent has looked since the last sample, every 3 s while a cell runs. */
  seen?: IRanksSeen[];
  seen_at?: number;
}

/** The last minutes of a group's memory, newest last. */
export interface ISamples {
  samples: IMemorySample[];
}

/** The memory and processor of one rank: a value for each of the times, null where there was none. */
export interface IRankSamples {
  rank: number;
  resident_bytes: (number | null)[];
  /** Null where the ranks have no device, as in the fields below. */
  allocated_bytes: (number | null)[] | null;
  reserved_bytes: (number | null)[] | null;
  peak_bytes: (number | null)[] | null;
  device_used_bytes: (number | null)[] | null;
  cpu_percent: (number | null)[];
}

/** What the agent saw at a look. */
export interface ISeenAt {
  at: number;
  seen: IRanksSeen[];
}

/** A time without samples, because no client followed the memory. */
export interface ISampleGap {
  begin: number;
  end: number;
}

/** The use of one of the server's devices. */
export interface IDeviceSamples {
  accelerator: string;
  index: number;
  times: number[];
  utilization_percent: (number | null)[];
  power_watts: (number | null)[];
}

/** A page of a group's samples of the last hour, oldest first. */
export interface IPastSamples {
  times: number[];
  ranks: IRankSamples[];
  seen: ISeenAt[];
  gaps: ISampleGap[];
  /** Of groups on one machine. Read while a client followed them. */
  devices: IDeviceSamples[];
  /** Whether newer ones follow: ask again with `since`, the last of the times. */
  more: boolean;
}

/** A cell that ran on ranks of a group. */
export interface IHistoryCell {
  execution_id: string;
  execution_count: number | null;
  ranks: RankSet;
  notebook: string | null;
  cell_id: string | null;
  code: string;
}

/** The cells of all clients that ran on a group, oldest first. */
export interface IHistory {
  cells: IHistoryCell[];
}

/** An option of a launcher. */
export interface ILauncherOption {
  name: string;
  label: string;
  /** The label for other languages. */
  label_words?: IWords[] | null;
  help: string;
  help_words?: IWords[] | null;
  kind: 'text' | 'integer' | 'flag' | 'words' | 'object' | 'script';
  /** Values that are known to work; empty: anything. */
  choices: string[];
  /** Whether most users need it: forms show it first. */
  common: boolean;
  /** Whether few users need it: forms show it under *Advanced*. */
  advanced: boolean;
  /** The administrator's value for groups that do not set it; may be empty. */
  default: string;
  /** Whether only the administrator sets it. */
  fixed: boolean;
}

/** A launcher and its status. */
export interface ILauncherStatus {
  /** The name in start requests. */
  name: string;
  label: string;
  usable: boolean;
  /** What is free, or why it cannot be used here. */
  text: string;
  text_words?: IWords[] | null;
  options: ILauncherOption[];
}

/** An option of a start that a form can show by its row alone. */
export interface IStartOptionRow {
  /** The name in start requests. */
  name: string;
  /** The part that has it; empty: none. */
  part: string;
  label: string;
  label_words?: IWords[] | null;
  help: string;
  help_words?: IWords[] | null;
  /** `words`: a list of texts. */
  kind: 'text' | 'integer' | 'number' | 'flag' | 'words';
  /** All values of a text; empty: anything. */
  choices: string[];
  minimum: number | null;
  maximum: number | null;
  /** Of a text, or of each of the words, in characters. */
  max_length: number | null;
  /** What a start has that leaves it out, as the server is configured; null: nothing. */
  default: unknown;
}

/** The options of a start that a form can show by their rows alone. */
export interface IStartOptionRows {
  options: IStartOptionRow[];
}

/** Named options of a start. */
export interface IPreset {
  /** The name in start requests: `preset`. */
  name: string;
  label: string;
  description: string;
  /** Fields of a start request. */
  options: Record<string, unknown>;
  /** Why it cannot be used. */
  problem: string | null;
  problem_words?: IWords[] | null;
}

/** All presets. */
export interface IPresets {
  presets: IPreset[];
}

/** All launchers. */
export interface ILaunchers {
  launchers: ILauncherStatus[];
}

/** What a cell did to the memory of a rank; only of a megabyte and more. */
export interface ICellMemory {
  /** Of tensors on the rank's device, or of its process. */
  kind: 'allocated' | 'resident';
  /** Bytes that were allocated and not freed; less than 0 if more were freed. */
  added_bytes: number;
  /** The most that the rank held meanwhile; null if it had held as much before. */
  peak_bytes: number | null;
}

/** Something by which a rank holds memory. */
export interface IMemoryHolder {
  /** `model`, `Out[3]`, or `x in step()` for a variable of a call in the last traceback. */
  name: string;
  where: 'variable' | 'result' | 'traceback';
  /** Other holders that have memory in common with it; at most 5. */
  also: string[];
  type: string;
  /** Bytes of all storages that it holds; a view holds its whole storage. */
  bytes: number;
  /** Bytes that no other holder in the list holds, so that removing this one frees them. */
  frees_bytes: number;
  /** Bytes of `parameters`, `buffers`, `gradients` and `state` among them. */
  parts: Record<string, number>;
}

/** What a variable is on a rank. Read from its type: no code of its class runs. */
export interface IVariableOnRank {
  type: string;
  /** `tensor`, `array`, `module`, `container`, `object`; empty of plain values. */
  kind: string;
  /** [2, 3]; the length of a container or text; the number of tensors of a module. */
  shape: string;
  dtype: string;
  /** Without its index if it is the rank's own. */
  device: string;
  /** Of the storages that it holds, each once: a view holds the whole one. Null of what has no such size. */
  bytes: number | null;
  /** What else holds a part of this memory; at most 5. */
  shares?: string[];
  /** Bytes of `parameters`, `buffers`, `gradients` and `state` among them. */
  parts?: Record<string, number>;
  /** Of numbers, texts and tensors of one element; of containers and objects their first values; of modules `eval`, and how many parameters have no gradients. About 80 characters at most. */
  value: string;
  /** A checksum of all that was looked at inside; two ranks with another one differ. Empty: none. */
  content?: string;
  /** What the checksum does not have: the numbers of tensors, classes that cannot be read. */
  unseen?: string;
}

/** A tensor or another value that is not the same on all ranks. */
export interface ITensorDifference {
  /** Within the variable, as `layer.weight`; empty for the variable itself. */
  path: string;
  /** `values`: numbers of a tensor. `shape`: also its dtype. `placement`: how a DTensor is divided, or a part that does not fit this division. `value`: a value other than a tensor, see `found`. `missing`: not on these ranks. */
  what: 'values' | 'shape' | 'placement' | 'value' | 'missing';
  /** The ranks that differ from the reference in the same way. */
  ranks: RankSet;
  /** The largest set of ranks that have it alike. */
  reference: RankSet;
  shape: number[];
  dtype: string;
  /** The greatest finite difference of an element; null if there is none. */
  max_abs: number | null;
  /** Whether a differing element is nan or inf on one of them. */
  nonfinite: boolean;
  /** Number of elements that differ, of those compared; 0 if they are further on. */
  different: number;
  /** Number of elements compared, from the first on; 0 beyond the limit of bytes. */
  compared: number;
  /** Number of elements of the tensor. */
  elements: number;
  /** The value on these ranks, as text; empty for tensors that differ in numbers. */
  found: string;
  /** The value on the reference ranks. */
  expected: string;
}

/** A part of a variable of which it is not known whether ranks have it alike. */
export interface INotCompared {
  /** As of a difference. */
  path: string;
  ranks: RankSet;
  /** A reason, as `it is on the meta device, without numbers`. */
  why: string;
}

/** The differences of a variable between ranks: by checksums of all, by elements of the tensors that differ. */
export interface IComparison {
  /** As it was asked for. */
  name: string;
  /** `equal`: everything was compared, and is the same. `differs`: something is not. `not_compared`: nothing that was compared differs, but some was not: see `not_compared`, `left_out`, `busy` and `silent`. */
  outcome: 'equal' | 'differs' | 'not_compared';
  /** Ranks that were compared. */
  ranks: RankSet;
  /** Ranks that do not have the variable. */
  missing: RankSet;
  /** Ranks that run a cell, or whose device is busy: not compared, or not to the end. */
  busy: RankSet;
  silent: RankSet;
  /** Number of tensors compared. */
  tensors: number;
  /** Tensors among them that are divided over ranks: their parts are meant to differ. */
  sharded: number;
  /** Number of other values compared: numbers, texts, options of a module. */
  values: number;
  /** Of these tensors, on one rank. */
  bytes: number;
  /** At most 500. */
  differences: ITensorDifference[];
  /** At most 100. */
  not_compared: INotCompared[];
  /** How many more differences and parts that were not compared there are. */
  left_out: number;
}

/** The body of POST .../owners: a process that the group ends with. */
export interface IOwnerRequest {
  /** A running process on the server's machine. */
  pid: number;
  /** When it started, in clock ticks: field 22 of /proc/PID/stat. */
  started: number;
  /** How long the group outlives the last such process. */
  grace_seconds: number;
}

/** How a group is started: keyword arguments of `start` in Python. More are rows of GroupOptions and of parts. */
export interface IStartOptions {
  /** The name of one of the environments that are listed. */
  environment?: string;
  /** The absolute path of an interpreter, instead of an environment. */
  python?: string;
  /** One of auto, cuda, rocm, xpu, cpu. */
  accelerator?: string;
  /** Devices: a list of indices, a count, -1 or "all". */
  devices?: number[] | number | 'all';
  /** CPU ranks, 1 to 64; on devices their number. On several nodes all nodes' ranks. */
  num_ranks?: number;
  /** A preset, by name: its options are used where the request leaves them out (`jupyter dist presets`). */
  preset?: string;
  /** What starts a node agent on each machine of the group. `local`, the default: nothing, ranks run on the server's machine. `external`: you do, with the command in `join` of the group. Others: see `jupyter dist launchers`. */
  launcher?: string;
  /** Options of the launcher by name, as `jupyter dist launchers` lists them. */
  launcher_options?: Record<string, unknown>;
  /** How many machines the ranks run on. */
  num_nodes?: number;
  /** Ranks on each node, 1 to 64; or a list with the number of each node, such as [4, 8]. */
  ranks_per_node?: number[] | number;
  /** One of auto, nccl, gloo, xccl. */
  backend?: string;
  /** A directory, absolute or relative to the server's root. */
  cwd?: string;
  /** A notebook's path; its folder is the default cwd. */
  notebook?: string;
  /** Extra environment variables: an object of strings. */
  env?: Record<string, string>;
  /** Whether the training in cells is checked. By default the server's setting. */
  checks?: boolean;
  /** Idle groups, by name or id, that are parked before: the group needs their devices. */
  park?: string[];
  /** Park the group when nobody has used it for so long; 0: never. By default the server's setting for groups on devices. A group on CPU is parked into files. */
  park_after_seconds?: number;
  /** Save the group by itself so often, if cells have run since; 0: never. By default the server's setting. */
  save_every_seconds?: number;
  /** Save the group by itself so long before its allocation ends, and interrupt cells for that; 0: never. By default the server's setting. */
  save_before_end_seconds?: number;
  /** How many of these saves are kept; other saves are not deleted. */
  saves_kept?: number;
}

/** The body of POST /groups; all fields are optional. */
export interface IStartRequest {
  /** The name of one of the environments that are listed. */
  environment?: string;
  /** The absolute path of an interpreter, instead of an environment. */
  python?: string;
  /** One of auto, cuda, rocm, xpu, cpu. */
  accelerator?: string;
  /** Devices: a list of indices, a count, -1 or "all". */
  devices?: number[] | number | 'all';
  /** CPU ranks, 1 to 64; on devices their number. On several nodes all nodes' ranks. */
  num_ranks?: number;
  /** A preset, by name: its options are used where the request leaves them out (`jupyter dist presets`). */
  preset?: string;
  /** What starts a node agent on each machine of the group. `local`, the default: nothing, ranks run on the server's machine. `external`: you do, with the command in `join` of the group. Others: see `jupyter dist launchers`. */
  launcher?: string;
  /** Options of the launcher by name, as `jupyter dist launchers` lists them. */
  launcher_options?: Record<string, unknown>;
  /** How many machines the ranks run on. */
  num_nodes?: number;
  /** Ranks on each node, 1 to 64; or a list with the number of each node, such as [4, 8]. */
  ranks_per_node?: number[] | number;
  /** One of auto, nccl, gloo, xccl. */
  backend?: string;
  /** A directory, absolute or relative to the server's root. */
  cwd?: string;
  /** A notebook's path; its folder is the default cwd. */
  notebook?: string;
  /** Extra environment variables: an object of strings. */
  env?: Record<string, string>;
  /** A name for the group, unique among running groups. */
  name?: string;
  /** The environment of the group's processes, on top of the server's: NAME=value, each followed by a NUL. */
  environ?: string;
  /** The process that the group ends with; default: it outlives all. */
  owner?: Record<string, number | number>;
  /** Whether the training in cells is checked. By default the server's setting. */
  checks?: boolean;
  /** Idle groups, by name or id, that are parked before: the group needs their devices. */
  park?: string[];
  /** Park the group when nobody has used it for so long; 0: never. By default the server's setting for groups on devices. A group on CPU is parked into files. */
  park_after_seconds?: number;
  /** Save the group by itself so often, if cells have run since; 0: never. By default the server's setting. */
  save_every_seconds?: number;
  /** Save the group by itself so long before its allocation ends, and interrupt cells for that; 0: never. By default the server's setting. */
  save_before_end_seconds?: number;
  /** How many of these saves are kept; other saves are not deleted. */
  saves_kept?: number;
}

/** The body of POST .../start_again: variables of which no process knows the values any more. */
export interface IStartAgainRequest {
  /** Variables of the start, in place of known and unknown ones. */
  env?: Record<string, string>;
  /** As `environ` of a start; used if the start had one whose values are not known. */
  environ?: string;
}

/** What ranks do instead of running code, with objects in files of this user (the clients' push, pull, launch). */
export interface IRankCall {
  /** `set`: set the variables in a file. `get`: write the values of `names` to a file. `call`: call the function in a file, write its result to another. `script`: run a script. */
  do: 'set' | 'get' | 'call' | 'script';
  /** The file to read, by rank; or one for `all`. */
  files?: Record<string, string>;
  /** Where a rank writes a file that has its number as name: in the first folder with space. */
  folders?: string[];
  /** For `get` and `call`: write data, which runs no code where it is read, or refuse what is none. */
  as_data?: boolean;
  /** For `get`: variables or other expressions. */
  names?: string[];
  /** For `script`: its name and its arguments. */
  argv?: string[];
  /** For `script`: its absolute path. */
  path?: string;
  /** For `script`: a module to run instead of a path. */
  module?: string;
}

/** How a cell is run: keyword arguments of `run` and `submit` in Python. Parts have more. */
export interface IRunOptions {
  /** The notebook cell's id. */
  cell_id?: string | null;
  /** The notebook's path. */
  notebook?: string | null;
  /** Whether a failure aborts the cells of the same notebook queued after it. */
  stop_on_error?: boolean;
  /** An execution: if it has failed by now, this one is aborted as if queued after it. */
  after?: string | null;
  /** Whether to leave it out of the history. */
  silent?: boolean;
  /** The number beside the cell, if its client counts cells as a kernel does. By default the ranks count. */
  execution_count?: number | null;
  /** Whether to refuse it (`needs_all_ranks`) if it calls what all ranks must call, and is for some. */
  ask_first?: boolean;
  /** Whether the client answers what its ranks ask for (`asking` of the execution). By default `input()` raises an error at once. */
  allow_stdin?: boolean;
  /** A call to carry out instead of running `code`, which then describes it. */
  call?: IRankCall;
  /** Whether ranks collect garbage and empty the device cache if the cell changed their memory. */
  empty_cache?: boolean;
  /** Whether ranks keep the state before the cell, so that it can be undone (`undo` of the execution). */
  keep_undo?: boolean;
}

/** The body of POST .../executions. */
export interface IRunRequest {
  /** The notebook cell's id. */
  cell_id?: string | null;
  /** The notebook's path. */
  notebook?: string | null;
  /** Whether a failure aborts the cells of the same notebook queued after it. */
  stop_on_error?: boolean;
  /** An execution: if it has failed by now, this one is aborted as if queued after it. */
  after?: string | null;
  /** Whether to leave it out of the history. */
  silent?: boolean;
  /** The number beside the cell, if its client counts cells as a kernel does. By default the ranks count. */
  execution_count?: number | null;
  /** Whether to refuse it (`needs_all_ranks`) if it calls what all ranks must call, and is for some. */
  ask_first?: boolean;
  /** Whether the client answers what its ranks ask for (`asking` of the execution). By default `input()` raises an error at once. */
  allow_stdin?: boolean;
  /** A call to carry out instead of running `code`, which then describes it. */
  call?: IRankCall;
  /** Whether ranks collect garbage and empty the device cache if the cell changed their memory. */
  empty_cache?: boolean;
  /** The code to run: a string of at most 16 MiB. */
  code: string;
  /** A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0. */
  ranks?: string;
  /** Whether ranks keep the state before the cell, so that it can be undone (`undo` of the execution). */
  keep_undo?: boolean;
}

/** The body of POST .../ranks/{rank}/comms: a message to a widget. */
export interface ICommRequest {
  kind: 'comm_open' | 'comm_msg' | 'comm_close';
  /** In JSON: `comm_id`, `data`, and if needed `target_name` (of `comm_open`), `metadata`, `buffers` (in base64) and `msg_id`, which names the message: `comm_done` has it when the code has handled it. */
  content: string;
}

/** The body of POST .../input: the answer to what ranks ask for. */
export interface IInputRequest {
  /** A line, at most 10000 characters; null: there is no more input. */
  text: string | null;
  /** Which ranks; by default all that ask, if they ask the same. */
  ranks?: string;
  /** The `seq` of the question; later questions are not answered then. */
  seq?: number;
}

/** The body of POST .../replace: the variables that new ranks begin with. */
export interface IReplaceRequest {
  /** The variables that they begin with. `empty`: nothing. `copy`: copies of what the other ranks have alike, of the lowest one. `save`: their variables in a save; cells that ran since can be run again on them. `undo`: the other ranks undo the cell in which these died, and give them copies as `copy`. */
  state?: 'empty' | 'copy' | 'save' | 'undo';
  /** For `copy`: whether names are left out that the other ranks do not have alike (the default), or copied, too. With a single other rank nothing can be compared: `copy` is required. */
  others?: 'leave' | 'copy';
  /** For `save`: its name; default: the newest that the group can restore. */
  save?: string;
  /** A folder of saves: absolute, or relative to the server's root; default: the server's. */
  folder?: string;
  /** Whether to try a save of another version of Python. */
  any_version?: boolean;
}

/** A body that selects ranks; default: all. */
export interface IRanksRequest {
  /** A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0. */
  ranks?: string;
}

/** A body without fields. */
export interface IEmptyRequest {
}

/** How long to wait for a change of a group. */
export interface IStatusQuery {
  /** Seconds, 0 to 300. */
  wait?: number;
  /** Answer once the group has left this state. */
  not_state?: string;
}

/** How long to wait for the end of an execution. */
export interface IViewQuery {
  /** Seconds, 0 to 300. */
  wait?: number;
}

/** Which ranks to ask. */
export interface IRanksQuery {
  /** A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0. */
  ranks?: string;
}

/** Which samples to return. */
export interface ISamplesQuery {
  /** Seconds since the epoch: only later samples. */
  since?: number;
  /** Only the last seconds, by the server's clock. */
  seconds?: number;
  /** How many, 1 to 1200. */
  limit?: number;
}

/** How many cells to return. */
export interface IHistoryQuery {
  /** How many cells. Together at most 4 MiB of code. */
  number?: number;
}

/** Which part of a log to return. */
export interface ILogQuery {
  /** Bytes of records, up to 8388608. */
  tail_bytes?: number;
  /** Only records before this one. */
  before?: number;
}

/** Which model to compare. */
export interface ICheckQuery {
  /** A variable that is a torch.nn.Module. */
  name: string;
}

/** Whether cells of a group are checked. */
export interface IChecksSwitch {
  /** False: ranks observe nothing, from the next step on. */
  on: boolean;
}

/** Which names to read, and on which ranks. */
export interface IPeekQuery {
  /** Names such as `loss`, `model.weight` or `state['lr']`, with commas between them; empty: the names of the function that runs. */
  names?: string;
  /** A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0. */
  ranks?: string;
}

/** An error of training that its ranks have proved. Every number is in `evidence`. */
export interface ICheck {
  /** The ranks that it is about. */
  ranks: RankSet;
  /** What was seen, on which ranks and where, and what follows from it. */
  message: string;
  /** The message for other languages. */
  message_words?: IWords[] | null;
  /** What was measured or compared, a sentence each. */
  evidence: string[];
  /** Of each sentence of the evidence. */
  evidence_words?: (IWords[] | null)[];
  /** What to do. */
  advice: string;
  advice_words?: IWords[] | null;
  /** When it was found first, in seconds since the epoch. */
  since: number;
  /** As `same_batch`: docs/how-to/find-what-is-wrong.md has all. */
  kind: string;
  /** Null: no line of the user's code is known. */
  line: ICodeLine | null;
  /** Since which step of the cell, from 1 on; null: it is not about steps. */
  step: number | null;
}

/** What is wrong with the training in a cell. */
export interface ICellChecks {
  /** The worst first, at most 4; while the cell runs, those that hold now. */
  checks: ICheck[];
  /** False: the cells of the group are not checked. */
  on: boolean;
}

/** The numbers of one rank under one name. */
export interface ICurveOfRank {
  rank: number;
  /** The step of each number, if steps rise on every rank; else a count from 0. */
  steps: number[];
  /** As printed, in seconds if with a unit of time; null is nan or inf. */
  values: (number | null)[];
}

/** The numbers of all ranks under one name. */
export interface ICurve {
  name: string;
  ranks: ICurveOfRank[];
}

/** The curves of an execution, in the order in which they appeared. */
export interface ICurves {
  execution_id: string;
  curves: ICurve[];
  /** How many numbers are not listed, the last of all; the file has them. */
  left_out: number;
  /** Of the log, in the middle of a very long output; their numbers are missing. */
  unread_bytes: number;
}

/** The body of POST .../debug. */
export interface IDebugRequest {
  /** In the format of Jupyter's debug_request: `seq`, `type`, `command` and `arguments`. */
  message: Record<string, unknown>;
  /** A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0. */
  ranks?: string;
}

/** The reply of one rank's debugger. */
export interface IDebugReply {
  rank: number;
  /** In the format of Jupyter's debug_reply. */
  content: Record<string, unknown>;
}

/** The replies of all ranks that were asked. */
export interface IDebugReplies {
  replies: IDebugReply[];
}

/** The last run of a cell on some ranks, in the processes that they have now. */
export interface ICellRun {
  ranks: RankSet;
  /** Of its code, counted from 1 in the order in which they first ran. */
  version: number;
  execution_id: string;
  execution_count: number | null;
}

/** The ranks that have missed a cell, and why. */
export interface IMissedCell {
  ranks: RankSet;
  /** `replaced`: it ran before their process began. `changed`: they ran an older version. `skipped`: none. */
  reason: 'replaced' | 'changed' | 'skipped';
  /** How the cell ended on these ranks, `lost` if they died in it; where they were not in it or succeeded, how it ended as a whole. */
  state?: ExecutionState;
  /** The ranks on which it ended so, if not `ok`. */
  ended_on?: RankSet;
}

/** A cell, the version that counts, and on which ranks it ran; or an earlier run of it that replaced ranks need. */
export interface IDriftCell {
  /** Of the last run that succeeded on a rank, else of the last one. */
  execution_id: string;
  execution_count: number | null;
  notebook: string | null;
  cell_id: string | null;
  /** The first line. */
  line: string;
  /** How that run ended: `ok` if it succeeded on any rank. */
  state: ExecutionState;
  /** Of its slowest rank. */
  seconds: number | null;
  /** How many versions of its code have run. */
  versions: number;
  /** The version of this run. */
  version: number;
  runs: ICellRun[];
  missed: IMissedCell[];
  /** To catch up: replaced ranks that have missed it, if it can be sent again and was `ok` or a later cell needs it. */
  offered: RankSet;
  /** Null unless ranks have missed it; of a call of a client, which has none, too. */
  code: string | null;
  /** The `execution_id` of offered cells before it that set or change what it reads. */
  uses: string[];
}

/** Which version of which cell ran on which ranks since the last restart, in the order to run them again. */
export interface IDrift {
  /** The generation of the group. */
  generation: number;
  cells: IDriftCell[];
  /** How many missed cells follow these: their code is beyond 4 MiB. */
  left_out: number;
  /** Whether older cells are no longer known. */
  forgotten: boolean;
}

/** Some ranks of a verdict, and where they are. */
export interface IVerdictPart {
  ranks: RankSet;
  state: 'waits' | 'runs' | 'idle' | 'dead' | 'unknown';
  /** The user's line that they are at, or the last cell of idle ones. */
  place: string | null;
  place_words?: IWords[] | null;
  /** The collective that they wait in: its name, process group, number and shape. */
  call: string | null;
  call_words?: IWords[] | null;
}

/** Why a cell does not end: which ranks wait for which others. */
export interface IVerdict {
  /** `waits`: it may end. */
  kind: 'cannot_end' | 'waits';
  /** `busy`: the others may get there. `still`: nothing has moved for a while, and no rank is missing. `cut`: so, and nodes cannot connect to each other. */
  reason: 'missing' | 'dead' | 'order' | 'mismatch' | 'shapes' | 'busy' | 'still' | 'cut';
  message: string;
  /** The message for other languages. */
  message_words?: IWords[] | null;
  /** When this was first seen. */
  since: number;
  waiting: IVerdictPart[];
  /** The ranks that are waited for. */
  needed: IVerdictPart[];
  /** The ranks that are waited for, if they are idle and the cell was not sent to them. */
  could_join?: RankSet;
  /** Which nodes cannot connect to each other, at which addresses, and what to do (`cut`). */
  paths?: string;
}

/** Completions at a cursor, in the format of Jupyter's complete_reply; positions are in characters. */
export interface ICompletion {
  matches: string[];
  cursor_start: number;
  cursor_end: number;
  /** Of each match: function, class, module, instance, property, keyword; or empty. Left out while the rank runs a cell. */
  types?: string[];
  /** Of each match that is a function or class; or empty. */
  signatures?: string[];
}

/** What is at a cursor, in the format of Jupyter's inspect_reply. */
export interface IInspection {
  found: boolean;
  /** By MIME type; `text/plain` is what `name?` prints. */
  data: Record<string, string>;
  /** The rank runs a cell: it can only describe functions, classes and modules. */
  busy: boolean;
}

/** The body of POST .../complete. */
export interface ICompleteRequest {
  /** The cell, at most 1 MiB. */
  code: string;
  /** The cursor, in characters; the end. */
  cursor_pos?: number | null;
}

/** The body of POST .../inspect. */
export interface IInspectRequest {
  /** The cell, at most 1 MiB. */
  code: string;
  /** The cursor, in characters; the end. */
  cursor_pos?: number | null;
  /** 0: as `name?`; 1: as `name??`, with the source. */
  detail?: number;
}

/** The body of POST .../park. */
export interface IParkRequest {
  /** Where tensors go: `host`, the memory of the machine, or `file`, files in `folder`, which also frees the memory of a group on CPU. */
  to?: 'host' | 'file';
  /** For `file`: an absolute path on the machine of the ranks; by default the group's folder. */
  folder?: string;
}

/** Where the memory of a parked group is. */
export interface IParkedState {
  /** When it was parked. */
  since: number;
  /** How long parking took. */
  seconds: number;
  /** Where its tensors are. */
  place: 'host' | 'file';
  /** `storages`: the storages of tensors were moved. `driver`: the driver's checkpoint took the rest of the devices' memory, contexts included. */
  by: ('storages' | 'driver')[];
  /** The bytes that are held there for all ranks. */
  held_bytes: number;
  /** The bytes that stay where they were, because they cannot be moved. */
  left_bytes: number;
  /** A sentence for each kind of memory that stays where it was. */
  left: string[];
  /** When it began to resume; null while it is parked. */
  resuming_since: number | null;
}

/** A value, as it was at one moment on some ranks. */
export interface IPeekedValue {
  /** The ranks that have it alike. */
  ranks: RankSet;
  name: string;
  /** The name of its class. */
  type: string;
  /** Of a tensor or an array; of a container, how many values it has. */
  shape: string;
  dtype: string;
  device: string;
  /** As text: numbers, short texts, and the first numbers of tensors on the CPU. */
  value: string;
  /** The running function that has the name, with its line; empty: a variable of cells. */
  place: string;
  place_words: IWords[] | null;
}

/** A rank that did not answer. */
export interface ISilentRank {
  rank: number;
  why: string;
  why_words: IWords[] | null;
}

/** The values of names on ranks. */
export interface IPeeked {
  values: IPeekedValue[];
  /** Names that ranks do not have now. */
  missing: Record<string, RankSet>;
  /** Ranks that did not answer, and what keeps them from it. */
  silent: ISilentRank[];
}

/** A rank that others waited for in collectives. */
export interface IWaitedFor {
  rank: number;
  seconds: number;
}

/** Where the time of one rank went. The four parts add up to `seconds`. */
export interface IRankProfile {
  rank: number;
  /** Of the cell. */
  seconds: number;
  /** In torch's operators; of a device, its kernels. */
  computing: number;
  /** In collectives in which all ranks had arrived, while it computed nothing. */
  communicating: number;
  /** In collectives before the last rank arrived, while it computed nothing. */
  waiting: number;
  /** In Python, in reading data, asleep. */
  other: number;
  /** The ranks that it waited for, longest first. */
  waits_for: IWaitedFor[];
  /** In how many collectives it arrived last. */
  last: number;
  /** How long another rank waited for it, on average, in seconds. */
  kept_waiting: number;
  /** Of its clock in the trace, for ranks on several machines. */
  shift_seconds: number;
}

/** The profile of a cell. */
export interface IProfile {
  execution_id: string;
  ranks: IRankProfile[];
  /** How many were compared. */
  collectives: number;
  /** Ranks that the others waited for; empty if there are none. */
  stragglers: RankSet;
  /** What stands out, and what is missing. */
  sentences: string[];
}

/** The body of POST .../resize. */
export interface IResizeRequest {
  /** What happens to names that are not alike on all ranks: `refuse` (the default) lists them in `resized` and keeps the size; `keep`: new ranks lack them, and ranks that leave lose them; `copy`: new ranks get rank 0's. */
  others?: 'refuse' | 'keep' | 'copy';
  /** How many ranks there are to be. */
  num_ranks: number;
  /** The devices of new ranks, one each; by default the first that the group does not use. */
  devices?: number[];
}

/** A change of the number of ranks. */
export interface IResize {
  /** When it began. */
  at: number;
  /** How many ranks there were. */
  before: number;
  /** How many ranks were asked for. */
  after: number;
  /** How long it took; null while it is under way. */
  seconds: number | null;
  /** Why the group has its earlier size again. */
  error: IErrorBody | null;
  /** Sentences on what cells must make again, and what could not be copied. */
  again: string[];
  /** The names that new ranks have copies of. */
  copied: string[];
  /** The names with DTensors that are divided among the ranks of now. */
  resharded: string[];
  /** The names that were not alike on all ranks, or could not be compared. */
  differ: string[];
}

/** The body of POST .../saves. */
export interface ISaveRequest {
  /** Its name: up to 100 letters, digits, `_`, `.` and `-`. A save of this group with the name is replaced. By default the group's name and the time. */
  name?: string;
  /** A folder of saves: absolute, or relative to the server's root; default: the server's. */
  folder?: string;
  /** Whether to replace a save of another group with this name. */
  overwrite?: boolean;
  /** How long it may take once it has begun; longer, and nothing is changed. */
  timeout_seconds?: number;
}

/** The body of POST .../restore. */
export interface IRestoreRequest {
  /** The name of a save. */
  name: string;
  /** A folder of saves: absolute, or relative to the server's root; default: the server's. */
  folder?: string;
  /** Whether to try it with another version of Python. */
  any_version?: boolean;
  /** How long it may take once it has begun; longer, and nothing is changed. */
  timeout_seconds?: number;
}

/** Which folder of saves to look into. */
export interface ISavesQuery {
  /** A folder of saves: absolute, or relative to the server's root; default: the server's. */
  folder?: string;
}

/** Which saves to return. */
export interface ILastSavesQuery {
  /** The name of a group; by default all. */
  group?: string;
}

/** When a group saves by itself. */
export interface ISelfSaving {
  /** If cells have run since the last save; 0: not so. */
  every_seconds: number;
  /** Before its allocation ends; 0: not then. */
  before_end_seconds?: number;
  /** When its allocation ends, as far as its agent knows. */
  ends_at?: number | null;
  /** How many of these saves are kept. */
  kept: number;
  /** Why the last one failed: no more are made until a save succeeds. */
  problem: string | null;
}

/** A name that cannot be saved. */
export interface ISkipped {
  name: string;
  ranks: RankSet;
  /** Why, in a sentence. */
  reason: string;
  /** The cell that made it, as in `[5]`; null if that is not known. */
  execution_count: number | null;
  /** The code of that cell, to run it again after a restore. */
  code: string | null;
}

/** What is not saved of a name that is. */
export interface ISaveNote {
  name: string;
  ranks: RankSet;
  /** What, and why, in a sentence. */
  reason: string;
}

/** A save: the variables of all ranks of a group at one moment. */
export interface ISave {
  name: string;
  /** Where its files are. */
  folder: string;
  /** Another one for each time that the name is saved. */
  id: string;
  /** The name of the group. */
  group: string;
  group_id: string;
  world_size: number;
  accelerator: string;
  saved_at: number;
  /** How long it took. */
  seconds: number;
  /** How many variables it has, on the rank with the most. */
  num_names: number;
  /** Of the tensors and objects of all ranks. */
  total_bytes: number;
  /** Of them, what was not in the folder already. */
  written_bytes: number;
  /** The number of the last cell before it. */
  execution_count: number;
  python_version: string;
  torch_version: string;
  /** The version of this package. */
  jupyter_dist: string;
  /** Whether the group made it by itself: it may delete it, too. */
  automatic?: boolean;
  /** Names that could not be saved. */
  skipped: ISkipped[];
  /** What was not saved of other names. */
  notes: ISaveNote[];
  /** Why the group that was asked cannot restore it; null if it can. */
  problem?: string | null;
  problem_words?: IWords[] | null;
}

/** The newest save of a group's name, as it can be offered: when the group has ended, and before it is started. */
export interface ILastSave {
  name: string;
  folder: string;
  /** The name of the group. */
  group: string;
  saved_at: number;
  /** How many ranks a group must have to restore it. */
  world_size: number;
  /** Of its ranks; another version may not read it. */
  python_version: string;
  total_bytes: number;
}

/** The newest saves, by the names of groups and the numbers of their ranks. */
export interface ILastSaves {
  /** Newest first. */
  saves: ILastSave[];
}

/** The saves in a folder, newest first. */
export interface ISaves {
  folder: string;
  saves: ISave[];
  /** A sentence for each save that cannot be read, or is not this user's. */
  damaged: string[];
}

/** What the deletion of a save freed. */
export interface IDeletedSave {
  name: string;
  /** Null: another group is saving to the folder; the next deletion or save frees it. */
  freed_bytes: number | null;
}

/** A name that a save would have. */
export interface ISavedName {
  name: string;
  ranks: RankSet;
}

/** What a save would have now. */
export interface ISavePreview {
  names: ISavedName[];
  skipped: ISkipped[];
  notes: ISaveNote[];
  /** Of all ranks, before equal parts are written once. */
  total_bytes: number;
}

/** How far a save or a restore is. */
export interface ITransfer {
  action: 'save' | 'restore';
  name: string;
  folder: string;
  done_bytes: number;
  /** Of all ranks; 0 until they have counted. */
  total_bytes: number;
  /** Variables that a restore has read, on the rank with the most. Groups of 0.3 lack it. */
  num_names?: number;
}

/** The cells of a notebook that ran on ranks, as a script for torchrun. */
export interface IScript {
  script: string;
  /** How many cells it runs. */
  cells: number;
  /** The notebook's path. */
  notebook: string | null;
  /** Sentences about what is left out; they stand in the script, too. */
  notes: string[];
}

/** The body of POST .../script. */
export interface IScriptRequest {
  /** The path of the notebook, or its last parts; by default the only one. */
  notebook?: string | null;
  /** The notebook's code cells as JSON, [{id, source}]: cells that did not run on ranks become comments. */
  cells?: string | null;
}

/** Why a cell is slow, in one sentence. */
export interface ISlowCause {
  /** The ranks that it is about. */
  ranks: RankSet;
  /** What was seen, on which ranks and where, and what follows from it. */
  message: string;
  /** The message for other languages. */
  message_words?: IWords[] | null;
  /** What was measured or compared, a sentence each. */
  evidence: string[];
  /** Of each sentence of the evidence. */
  evidence_words?: (IWords[] | null)[];
  /** What to do. */
  advice: string;
  advice_words?: IWords[] | null;
  /** When it was found first, in seconds since the epoch. */
  since: number;
  /** `straggler`: ranks come last to the collectives of each step. `occasional`: the others wait for a rank now and then, and long. `uneven`: another rank is last each time. `input`: for the next batch. `blocked`: in the kernel, for a file or a time. `collector`: Python's garbage collector. `memory`: it grows with each step. `growing`: each step takes longer. `contention`: other programs use the processor. `accumulation`: gradients are averaged more often than the optimizer steps. `unused_parameters`: DistributedDataParallel looks for them. `device_sync`: ranks wait for values of devices that idle meanwhile. `fragmentation`: torch frees its cache of device memory again and again. `objects`: objects are pickled for other ranks. `line`: no fault, but the line that takes the most of a step. */
  kind: 'straggler' | 'occasional' | 'uneven' | 'input' | 'saving' | 'printing' | 'compiling' | 'blocked' | 'collector' | 'memory' | 'growing' | 'contention' | 'communication' | 'small_collectives' | 'accumulation' | 'unused_parameters' | 'device_sync' | 'fragmentation' | 'objects' | 'line';
  /** Which part of the time it costs, from 0 to 1. */
  share: number;
  /** The line that takes the time; null if none stands out. */
  place: ICodeLine | null;
}

/** Where the time of a rank went, as parts of it from 0 to 1. */
export interface IRankPace {
  rank: number;
  compute: number;
  /** In collectives whose ranks had all arrived. */
  communicate: number;
  /** In collectives, for ranks that came later. */
  wait: number;
  /** For data: in a DataLoader. */
  input: number;
  /** The rank that it waited for longest. */
  waits_for: number | null;
}

/** A line of the user's code, and which part of the time of the ranks it took. */
export interface ILineShare {
  ranks: RankSet;
  line: ICodeLine;
  share: number;
}

/** The steps of a loop, found by the recurring sequence of its collectives, or named by `track(step=...)`. */
export interface IStepTimes {
  /** How long a step takes now. */
  seconds: number;
  /** In a step; null if `track(step=...)` names the steps. */
  collectives: number | null;
  /** The seconds of a step in the course of the cell, oldest first; at most 60. */
  trend: number[];
  /** When each of the trend was measured. */
  times: number[];
}

/** Where the time of a cell goes. */
export interface IPace {
  execution_id: string;
  /** For how long it was watched. */
  seconds: number;
  /** Why it is slow now, or was at its end; the costliest first, at most 3. */
  causes: ISlowCause[];
  /** At most 64; of more ranks, the ranks with the shortest and the longest waits. */
  ranks: IRankPace[];
  /** The lines that took most of the time; at most 10. */
  lines: ILineShare[];
  /** Null if no steps were found. */
  steps: IStepTimes | null;
  /** What could not be measured, and why, a sentence each. */
  unknown: string[];
  /** Of each of these sentences. */
  unknown_words?: (IWords[] | null)[];
}

/** What was kept before a cell, so that it can be undone. */
export interface IUndoCost {
  /** Copied before the cell, on all of its ranks together. */
  bytes: number;
  /** How long the slowest rank took for it, before the cell. */
  milliseconds: number;
  /** What undo leaves as it is, a sentence for each object. */
  not_kept: string[];
  /** Why the cell cannot be undone, if its state was not kept. */
  reason?: string | null;
  /** Whether the cell changed something that an undo takes back, besides its own result. */
  changed?: boolean;
}

/** A cell that can be undone now. */
export interface IUndoableCell {
  execution_id: string;
  execution_count: number | null;
  ranks: RankSet;
  cell_id: string | null;
  notebook: string | null;
  line: string;
  cost: IUndoCost;
}

/** The cells that can be undone now, newest first; a cell is undone with the cells before it in this list. */
export interface IUndoableCells {
  cells: IUndoableCell[];
  /** The undone cells that can be done again, in this order, until a cell changes something. */
  undone?: IUndoableCell[];
  /** The cell in which ranks died and those after it: a replacement with the state `undo` undoes them. */
  lost?: IUndoableCell[];
}

/** The body of POST .../undo. */
export interface IUndoRequest {
  /** How many of the last kept cells; default: 1. */
  count?: number;
  /** Instead: these executions, which must be the last kept ones on their ranks. */
  executions?: string[];
}

/** The body of POST .../redo. */
export interface IRedoRequest {
  /** How many undone cells; default: 1. */
  count?: number;
  /** Instead: these executions, which must be the next undone ones on their ranks. */
  executions?: string[];
}

/** What holds the memory of a rank. */
export interface IHeldMemory {
  rank: number;
  /** Of all tensors, arrays and large texts that something holds, each storage once. */
  bytes: number;
  /** The same by device. */
  devices: Record<string, number>;
  /** Of the process. */
  resident_bytes: number;
  /** Of tensors on the device; null on CPU. */
  allocated_bytes: number | null;
  /** The allocated bytes, and what torch keeps for later tensors. */
  reserved_bytes: number | null;
  /** The most that was allocated. */
  peak_bytes: number | null;
  /** The largest first; at most 100. */
  holders: IMemoryHolder[];
  /** How many holders are not listed. */
  left_out: number;
  /** Whether everything was looked at; lists of many objects are not. */
  is_whole: boolean;
}

/** What a variable is on ranks that have it alike. */
export interface IVariableRow {
  type: string;
  /** `tensor`, `array`, `module`, `container`, `object`; empty of plain values. */
  kind: string;
  /** [2, 3]; the length of a container or text; the number of tensors of a module. */
  shape: string;
  dtype: string;
  /** Without its index if it is the rank's own. */
  device: string;
  /** Of the storages that it holds, each once: a view holds the whole one. Null of what has no such size. */
  bytes: number | null;
  /** What else holds a part of this memory; at most 5. */
  shares?: string[];
  /** Bytes of `parameters`, `buffers`, `gradients` and `state` among them. */
  parts?: Record<string, number>;
  /** Of numbers, texts and tensors of one element; of containers and objects their first values; of modules `eval`, and how many parameters have no gradients. About 80 characters at most. */
  value: string;
  /** A checksum of all that was looked at inside; two ranks with another one differ. Empty: none. */
  content?: string;
  /** What the checksum does not have: the numbers of tensors, classes that cannot be read. */
  unseen?: string;
  ranks: RankSet;
}

/** A name, and the variable behind it on the ranks. */
export interface IVariable {
  name: string;
  rows: IVariableRow[];
  /** Ranks without this variable. */
  missing: RankSet;
}

/** The variables that cells made on ranks. */
export interface IVariables {
  /** Ranks that answered. */
  ranks: RankSet;
  /** Ranks that run a cell; they are not asked. */
  busy: RankSet;
  /** Ranks that are dead, starting, or did not answer. */
  silent: RankSet;
  /** How many names of a rank are not listed. */
  left_out: number;
  variables: IVariable[];
  /** By rank. */
  memory: IHeldMemory[];
}

/** The body of POST .../compare. */
export interface ICompareRequest {
  /** A variable, or a part of it by attributes and items: `model`, `model.layer.weight`, `states[0]`, `model.state_dict()`. Nothing is computed. */
  name: string;
  /** A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0. */
  ranks?: string;
}

/** The first message. */
export interface IHelloMessage {
  type: 'hello';
  /** The id of this server process. */
  server: string;
}

/** What changed in ranks that have the same fields as before. */
export interface IRankChanges {
  /** These ranks. */
  ranks: string;
  /** Fields of Rank with a new value, which these ranks have alike. */
  alike: Record<string, unknown>;
  /** Other fields of Rank: a value for each of these ranks, in their order. */
  columns: Record<string, unknown[]>;
}

/** What changed in a group. */
export interface IGroupChange {
  id: string;
  /** Fields of Group with their new values, without `ranks`. */
  fields: Record<string, unknown>;
  /** Ranks that changed, whole: all of them without `by_field`. */
  ranks: IRank[];
  /** The other ranks that changed, with `by_field`. */
  rank_changes?: IRankChanges;
}

/** The changes of all groups. */
export interface IChangesMessage {
  type: 'changes';
  /** Counts these messages; the first, 1, has all groups whole. */
  seq: number;
  /** Groups that are new, or have another number of ranks. */
  groups: IGroup[];
  /** Groups that the client has. */
  changes: IGroupChange[];
  /** The ids of all groups, oldest first, if one came or went. */
  order?: string[];
}

/** An execution changed. */
export interface IExecutionMessage {
  type: 'execution';
  group: string;
  execution: IExecution;
}

/** The cell of a `submit` was queued; messages of its execution follow. */
export interface ISubmittedMessage {
  type: 'submitted';
  key: string;
  execution: IExecution;
}

/** The changes of a view since `since`. */
export interface IViewMessage {
  type: 'view';
  group: string;
  execution_id: string;
  since: number;
  seq: number;
  items: IViewChange[];
  /** Ids of items to drop before `items` are applied, in order. */
  removed: number[];
  /** Drop what you have first. */
  reset?: boolean;
}

/** New records of a rank's log. */
export interface ILogMessage {
  type: 'log';
  group: string;
  rank: number;
  records: ILogRecord[];
  seq: number;
  /** How many records before them were skipped because there were too many. */
  skipped: number;
}

/** A comm of a rank as it is now: what a page needs to open it. */
export interface ICommState {
  comm_id: string;
  rank: number;
  /** The execution whose code opened it. */
  execution_id: string | null;
  target_name?: string;
  /** As in Jupyter's `comm_open`; of a widget the state as it is now. */
  data: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  /** In base64. */
  buffers?: string[];
  /** Whether its rank lives. */
  live: boolean;
  /** False: its state was too large to be kept. */
  is_kept: boolean;
}

/** What happened to a comm: a message of a rank, or the death of one. */
export interface ICommNews {
  seq: number;
  /** `comm_done`: the rank has handled the message `msg_id`. `dead`: the rank has died, with all its comms. */
  kind: 'comm_open' | 'comm_msg' | 'comm_close' | 'comm_done' | 'dead';
  rank: number;
  comm_id?: string;
  execution_id?: string | null;
  target_name?: string;
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  /** In base64. */
  buffers?: string[];
  /** The `msg_id` of the message that the code was handling. */
  parent?: string | null;
  msg_id?: string;
}

/** The comms of a group's ranks: at first all that are open, then what happens to them. */
export interface ICommsMessage {
  type: 'comms';
  group: string;
  /** All: forget others. At first, and after a lost connection. */
  comms?: ICommState[];
  /** In order; after `comms`, if there are both. */
  messages: ICommNews[];
}

/** A memory sample. */
export interface IMemoryMessage {
  type: 'memory';
  group: string;
  sample: IMemorySample;
}

/** Devices and host. */
export interface IDevicesMessage {
  devices: IDevice[];
  host: IHost;
  /** Whether other users have processes on the devices. */
  processes_hidden: boolean;
  /** A sentence for each kind of device that could not be read. */
  problems: string[];
  type: 'devices';
}

/** The error for an invalid message. */
export interface IErrorMessage {
  type: 'error';
  error: IErrorBody;
  /** Its known fields; null if it was not an object. */
  request: Record<string, unknown> | null;
}

/** All groups: first whole, then their changes. */
export interface IGroupsTopic {
  topic: 'groups';
}

/** An execution and its view. */
export interface IExecutionTopic {
  topic: 'execution';
  group: string;
  execution: string;
}

/** A rank's log. */
export interface ILogTopic {
  topic: 'log';
  group: string;
  rank: number;
}

/** The widgets of a group's ranks. */
export interface ICommsTopic {
  topic: 'comms';
  group: string;
}

/** A group's memory; samples are taken while it is followed. */
export interface IMemoryTopic {
  topic: 'memory';
  group: string;
}

/** Devices and host. */
export interface IDevicesTopic {
  topic: 'devices';
}

/** A message of a page that follows or stops following a topic, with the fields of the topic. */
export interface IClientMessage {
  type: 'subscribe' | 'unsubscribe';
  topic: 'groups' | 'execution' | 'log' | 'comms' | 'memory' | 'devices';
  group?: string;
  execution?: string;
  rank?: number;
  /** The highest `seq` that the page has, or 0. */
  since?: number;
  /** Of `groups`: whether ranks that changed are sent field by field. */
  by_field?: boolean;
}

/** A message of a page that runs a cell and follows it: `POST .../executions` and a subscription in one. */
export interface ISubmitMessage {
  type: 'submit';
  group: string;
  /** The idempotency key, which the answer has, too. The same key by POST is the same cell. */
  key: string;
  cell: IRunRequest;
}

/** A message of a page to a widget on a rank: `POST .../ranks/{rank}/comms`; only an error is answered. */
export interface ICommMessage {
  kind: 'comm_open' | 'comm_msg' | 'comm_close';
  /** In JSON: `comm_id`, `data`, and if needed `target_name` (of `comm_open`), `metadata`, `buffers` (in base64) and `msg_id`, which names the message: `comm_done` has it when the code has handled it. */
  content: string;
  type: 'comm';
  group: string;
  rank: number;
  /** The answer to an invalid message has it, too. */
  key: string;
}

export type Topic = IGroupsTopic | IExecutionTopic | ILogTopic | ICommsTopic | IMemoryTopic | IDevicesTopic;

export type TopicMessage = IChangesMessage | IExecutionMessage | IViewMessage | ILogMessage | ICommsMessage | IMemoryMessage | IDevicesMessage | IErrorMessage;

export type ServerMessage = IHelloMessage | ISubmittedMessage | IChangesMessage | IExecutionMessage | IViewMessage | ILogMessage | ICommsMessage | IMemoryMessage | IDevicesMessage | IErrorMessage;

/** What parts add to the bundle of a running cell, from its execution. */
export const BUNDLE_FIELDS: readonly (keyof IExecution & keyof IRanksBundle)[] = ['verdict'];
