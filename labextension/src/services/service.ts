/**
 * The facade of the server, which hides REST and the WebSocket from the rest
 * of the extension.
 */
import { ServerConnection } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Channel } from './channel/channel';
import type {
  ICommRequest,
  IComparison,
  ICompletion,
  IDevices,
  IDrift,
  IEnvironment,
  IExecution,
  IGroup,
  IHistoryCell,
  IInputAnswered,
  IInputRequest,
  IDebugReplies,
  IDebugRequest,
  IInspectRequest,
  IInspection,
  ILauncherStatus,
  ILogPage,
  IMemorySample,
  IPastSamples,
  IRankStack,
  IRunRequest,
  IScript,
  IScriptRequest,
  IStartRequest,
  IVariables,
  IView,
  Topic
} from './protocol';
import * as restapi from './rest/requests';
import type { ITopicHandler, ITopicSubscription } from './channel/topics';

export type { IDownload } from './rest/requests';

/** The content of a message to a widget, as in Jupyter's protocol. */
export interface ICommContent {
  comm_id: string;
  target_name?: string;
  data: object;
  metadata: object;
  /** In base64. */
  buffers?: string[];
  /** Names the message. */
  msg_id: string;
}

/** The server as one object. Promises reject with a DistError. */
export interface IService extends IDisposable {
  /** Emits all groups when one changed, and soon after connecting. */
  readonly groupsChanged: ISignal<unknown, IGroup[]>;
  /** Emitted when the WebSocket opens (true) or closes (false). */
  readonly connectionChanged: ISignal<unknown, boolean>;
  readonly connected: boolean;
  /** Follow a topic; the subscription survives reconnections. */
  subscribe(topic: Topic, handler: ITopicHandler): ITopicSubscription;

  environments(): Promise<{
    environments: IEnvironment[];
    default: string | null;
  }>;
  warmEnvironment(name: string): Promise<void>;
  /** Each launcher with what is free, or why it cannot be used; asking an engine can take seconds. */
  launchers(): Promise<ILauncherStatus[]>;
  devices(): Promise<IDevices>;

  groups(): Promise<IGroup[]>;
  /** Resolves at once, with a group in state `starting`. */
  startGroup(request: IStartRequest): Promise<IGroup>;
  /** Resolves when the server has answered a start of that name from this page; null if there is none. */
  starting(name: string): Promise<void> | null;
  /** What this page started a group with; null if it did not. */
  requestOf(group: string): IStartRequest | null;
  shutdownGroup(group: string): Promise<void>;
  restartGroup(group: string): Promise<IGroup>;
  /** Start new processes for dead ranks; the others keep theirs. */
  replaceRanks(group: string): Promise<IGroup>;
  /** Kill one rank's process, even if it hangs; the others are not affected. */
  killRank(group: string, rank: number): Promise<IGroup>;
  /** Re-create the process group in the same processes. */
  reformGroup(group: string): Promise<IGroup>;
  interrupt(group: string, ranks?: string): Promise<{ interrupted: string; idle: string }>;
  emptyCache(group: string, ranks?: string): Promise<Record<string, number>>;
  /** The cells of a notebook that ran on ranks, as a script for torchrun. */
  exportScript(group: string, body: IScriptRequest): Promise<IScript>;
  memory(group: string): Promise<IMemorySample[]>;
  /** A page of the last hour's samples, after a time. */
  samples(group: string, since: number): Promise<IPastSamples>;
  /** Completions at a cursor position (in characters) on one rank. */
  complete(group: string, rank: number, code: string, cursorPos: number): Promise<ICompletion>;
  /** What a rank knows about the name at a cursor position. */
  inspect(group: string, rank: number, body: IInspectRequest): Promise<IInspection>;
  /** Ask the debuggers of ranks. */
  debug(group: string, body: IDebugRequest): Promise<IDebugReplies>;

  run(group: string, request: IRunRequest): Promise<IExecution>;
  executions(group: string): Promise<IExecution[]>;
  /** The last cells that ran on a group, with their code, oldest first. */
  history(group: string): Promise<IHistoryCell[]>;
  view(group: string, execution: string): Promise<IView>;
  /** Answer what ranks of an execution ask for. */
  answerInput(group: string, execution: string, body: IInputRequest): Promise<IInputAnswered>;
  /** Send a message to a widget of a rank; resolves when it was sent, and rejects if it is refused. */
  sendComm(group: string, rank: number, kind: ICommRequest['kind'], content: ICommContent): Promise<void>;
  /** Cancel a queued execution, interrupt a running one. */
  cancel(group: string, execution: string): Promise<void>;
  /** Run a running execution, as it was submitted, on more ranks. */
  extend(group: string, execution: string, ranks: string): Promise<void>;
  /** The Python stacks of all ranks, equal ones once. */
  stacks(group: string): Promise<IRankStack[]>;
  /** Which version of which cell ran on which ranks, and which ranks have missed it. */
  drift(group: string): Promise<IDrift>;
  /** The variables of all ranks that run no cell, equal ones once. */
  variables(group: string): Promise<IVariables>;
  /** In what the tensors of a variable differ between ranks; takes up to some 20 seconds. */
  compare(group: string, name: string): Promise<IComparison>;

  log(group: string, rank: number, page: { tail_bytes?: number; before?: number }): Promise<ILogPage>;
  /** The URL of a rank's full log; needs the browser's cookie. */
  logDownloadUrl(group: string, rank: number): string;
  /** A URL that the browser can download it from, with or without a cookie. */
  logDownload(group: string, rank: number): Promise<restapi.IDownload>;
  /** The same for the merged trace of a profiled cell. */
  traceDownload(group: string, execution: string): Promise<restapi.IDownload>;
}

export class DistService implements IService {
  constructor(settings: ServerConnection.ISettings) {
    this._settings = settings;
    this._channel = new Channel(settings);
    this._channel.start();
  }

  get groupsChanged(): ISignal<unknown, IGroup[]> {
    return this._channel.groups;
  }

  get connectionChanged(): ISignal<unknown, boolean> {
    return this._channel.connection;
  }

  get connected(): boolean {
    return this._channel.connected;
  }

  get isDisposed(): boolean {
    return this._channel.isDisposed;
  }

  dispose(): void {
    this._channel.dispose();
  }

  subscribe(topic: Topic, handler: ITopicHandler): ITopicSubscription {
    return this._channel.subscribe(topic, handler);
  }

  environments(): ReturnType<IService['environments']> {
    return restapi.listEnvironments(this._settings);
  }

  warmEnvironment(name: string): Promise<void> {
    return restapi.warmEnvironment(this._settings, name);
  }

  async launchers(): Promise<ILauncherStatus[]> {
    return (await restapi.listLaunchers(this._settings)).launchers;
  }

  devices(): Promise<IDevices> {
    return restapi.listDevices(this._settings);
  }

  async groups(): Promise<IGroup[]> {
    return (await restapi.listGroups(this._settings)).groups;
  }

  async startGroup(request: IStartRequest): Promise<IGroup> {
    const answer = restapi.startGroup(this._settings, request);
    const name = request.name ?? '';
    const settled = answer.then(
      () => undefined,
      () => undefined
    );
    this._starting.set(name, settled);
    void settled.then(() => this._starting.delete(name));
    const group = await answer;
    this._requests.set(group.id, request);
    return group;
  }

  starting(name: string): Promise<void> | null {
    return this._starting.get(name) ?? null;
  }

  requestOf(group: string): IStartRequest | null {
    return this._requests.get(group) ?? null;
  }

  shutdownGroup(group: string): Promise<void> {
    return restapi.shutdownGroup(this._settings, group);
  }

  restartGroup(group: string): Promise<IGroup> {
    return restapi.restartGroup(this._settings, group);
  }

  replaceRanks(group: string): Promise<IGroup> {
    return restapi.replaceRanks(this._settings, group);
  }

  killRank(group: string, rank: number): Promise<IGroup> {
    return restapi.killRank(this._settings, group, rank);
  }

  complete(group: string, rank: number, code: string, cursorPos: number): Promise<ICompletion> {
    return restapi.complete(this._settings, group, rank, code, cursorPos);
  }

  debug(group: string, body: IDebugRequest): Promise<IDebugReplies> {
    return restapi.debug(this._settings, group, body);
  }

  inspect(group: string, rank: number, body: IInspectRequest): Promise<IInspection> {
    return restapi.inspect(this._settings, group, rank, body);
  }

  reformGroup(group: string): Promise<IGroup> {
    return restapi.reformGroup(this._settings, group);
  }

  interrupt(group: string, ranks = 'all'): Promise<{ interrupted: string; idle: string }> {
    return restapi.interruptGroup(this._settings, group, ranks);
  }

  exportScript(group: string, body: IScriptRequest): Promise<IScript> {
    return restapi.exportScript(this._settings, group, body);
  }

  async emptyCache(group: string, ranks = 'all'): Promise<Record<string, number>> {
    const answer = await restapi.emptyCache(this._settings, group, ranks);
    return answer.freed_bytes;
  }

  async memory(group: string): Promise<IMemorySample[]> {
    return (await restapi.listMemory(this._settings, group)).samples;
  }

  samples(group: string, since: number): Promise<IPastSamples> {
    return restapi.listSamples(this._settings, group, since);
  }

  async run(group: string, request: IRunRequest): Promise<IExecution> {
    const key = UUID.uuid4();
    const submitted = await this._channel.submit(group, request, key);
    return typeof submitted === 'string'
      ? restapi.runExecution(this._settings, group, request, key, submitted === 'unanswered')
      : submitted;
  }

  async executions(group: string): Promise<IExecution[]> {
    return (await restapi.listExecutions(this._settings, group)).executions;
  }

  async history(group: string): Promise<IHistoryCell[]> {
    return (await restapi.getHistory(this._settings, group)).cells;
  }

  view(group: string, execution: string): Promise<IView> {
    return restapi.getView(this._settings, group, execution);
  }

  answerInput(group: string, execution: string, body: IInputRequest): Promise<IInputAnswered> {
    return restapi.answerInput(this._settings, group, execution, body);
  }

  sendComm(group: string, rank: number, kind: ICommRequest['kind'], content: ICommContent): Promise<void> {
    return new Promise((resolve, reject) => {
      const text = JSON.stringify(content);
      if (this._channel.sendComm(group, rank, kind, text, `${content.msg_id}-${rank}`, reject)) {
        return; // a refusal comes by the WebSocket; success is what the rank sends
      }
      restapi.sendComm(this._settings, group, rank, { kind, content: text }).then(() => resolve(), reject);
    });
  }

  cancel(group: string, execution: string): Promise<void> {
    return restapi.cancelExecution(this._settings, group, execution);
  }

  async extend(group: string, execution: string, ranks: string): Promise<void> {
    await restapi.extendExecution(this._settings, group, execution, ranks);
  }

  async stacks(group: string): Promise<IRankStack[]> {
    return (await restapi.listStacks(this._settings, group)).stacks;
  }

  drift(group: string): Promise<IDrift> {
    return restapi.getDrift(this._settings, group);
  }

  variables(group: string): Promise<IVariables> {
    return restapi.listVariables(this._settings, group);
  }

  compare(group: string, name: string): Promise<IComparison> {
    return restapi.compare(this._settings, group, name);
  }

  log(group: string, rank: number, page: { tail_bytes?: number; before?: number }): Promise<ILogPage> {
    return restapi.getLog(this._settings, group, rank, page);
  }

  logDownloadUrl(group: string, rank: number): string {
    return restapi.logDownloadUrl(this._settings, group, rank);
  }

  logDownload(group: string, rank: number): Promise<restapi.IDownload> {
    return restapi.download(this._settings, group, this.logDownloadUrl(group, rank));
  }

  traceDownload(group: string, execution: string): Promise<restapi.IDownload> {
    return restapi.download(
      this._settings,
      group,
      restapi.apiUrl(this._settings, 'groups', group, 'executions', execution, 'trace')
    );
  }

  private _channel: Channel;
  private _requests = new Map<string, IStartRequest>();
  private _starting = new Map<string, Promise<void>>();
  private _settings: ServerConnection.ISettings;
}
