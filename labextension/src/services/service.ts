/**
 * The server as one object: the API's operations, the WebSocket, and what this page started.
 */
import { ServerConnection } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Channel } from './channel/channel';
import type { ITopicHandler, ITopicSubscription } from './channel/topics';
import type { ICommRequest, IExecution, IGroup, IRunRequest, IStartRequest, Topic } from './protocol';
import { Api, IApiRequest, IRetries } from './rest/api';
import { download, IDownload } from './rest/downloads';
import { apiUrl, ask, RETRY_CELL_FOR_MS } from './rest/requests';

export type { IDownload };

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

/** The server as one object: a method for each operation of the API, and more. Promises reject with a DistError. */
export interface IService extends IDisposable, Pick<Api, keyof Api> {
  /** Emits all groups when one changed, and soon after connecting. */
  readonly groupsChanged: ISignal<unknown, IGroup[]>;
  /** Emitted when the WebSocket opens (true) or closes (false). */
  readonly connectionChanged: ISignal<unknown, boolean>;
  readonly connected: boolean;
  /** How long the WebSocket was not answered when it was last opened, in seconds; null if it was, also by a refusal. */
  readonly unopenedSeconds: number | null;
  /** Follow a topic; the subscription survives reconnections. */
  subscribe(topic: Topic, handler: ITopicHandler): ITopicSubscription;
  /** Resolves when the server has answered a start of that name from this page; null if there is none. */
  starting(name: string): Promise<void> | null;
  /** Resolves when the server has answered a restart of that group, by its id, from this page; null if there is none. */
  restarting(group: string): Promise<void> | null;
  /** What this page started a group with; null if it did not. */
  requestOf(group: string): IStartRequest | null;
  /** Send a message to a widget of a rank; resolves when it was sent, and rejects if it is refused. */
  sendToWidget(group: string, rank: number, kind: ICommRequest['kind'], message: ICommContent): Promise<void>;
  /** Resolves with a URL from which the browser can download a file of a group, with or without a cookie. */
  download(group: string, url: string): Promise<IDownload>;
}

export class DistService extends Api implements IService {
  constructor(settings: ServerConnection.ISettings) {
    super();
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

  get unopenedSeconds(): number | null {
    return this._channel.unopenedSeconds;
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

  async start(request: IStartRequest): Promise<IGroup> {
    const group = await noted(this._starting, request.name ?? '', super.start(request));
    this._requests.set(group.id, request);
    return group;
  }

  restart(group: string): Promise<IGroup> {
    return noted(this._restarting, group, super.restart(group));
  }

  starting(name: string): Promise<void> | null {
    return this._starting.get(name) ?? null;
  }

  restarting(group: string): Promise<void> | null {
    return this._restarting.get(group) ?? null;
  }

  requestOf(group: string): IStartRequest | null {
    return this._requests.get(group) ?? null;
  }

  /** By the WebSocket; where that is not possible, or its answer is lost, by a request with the same key. */
  async submit(group: string, cell: IRunRequest): Promise<IExecution> {
    const key = UUID.uuid4();
    const submitted = await this._channel.submit(group, cell, key);
    return typeof submitted === 'string'
      ? super.submit(group, cell, { key, forMs: RETRY_CELL_FOR_MS, isUnanswered: submitted === 'unanswered' })
      : submitted;
  }

  sendToWidget(group: string, rank: number, kind: ICommRequest['kind'], message: ICommContent): Promise<void> {
    return new Promise((resolve, reject) => {
      const content = JSON.stringify(message);
      if (this._channel.sendComm(group, rank, kind, content, `${message.msg_id}-${rank}`, reject)) {
        return; // a refusal comes by the WebSocket; success is what the rank sends
      }
      this.sendComm(group, rank, { kind, content }).then(() => resolve(), reject);
    });
  }

  download(group: string, url: string): Promise<IDownload> {
    return download(this._settings, group, url);
  }

  protected ask<T>(request: IApiRequest, retries?: IRetries): Promise<T> {
    return ask(this._settings, request, retries);
  }

  protected urlOf(...path: (string | number)[]): string {
    return apiUrl(this._settings, ...path);
  }

  private readonly _channel: Channel;
  private readonly _requests = new Map<string, IStartRequest>();
  private readonly _restarting = new Map<string, Promise<void>>();
  private readonly _settings: ServerConnection.ISettings;
  private readonly _starting = new Map<string, Promise<void>>();
}

/** Note under a key that a request is on its way, until it has been answered in one way or the other. */
function noted<T>(requests: Map<string, Promise<void>>, key: string, answer: Promise<T>): Promise<T> {
  const settled = answer.then(
    () => undefined,
    () => undefined
  );
  requests.set(key, settled);
  void settled.then(() => requests.get(key) === settled && requests.delete(key));
  return answer;
}
