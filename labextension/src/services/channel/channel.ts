/**
 * The page's only WebSocket: multiplexes topics, keeps cursors, and reconnects
 * with back-off, without subscribers noticing.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { PromiseDelegate } from '@lumino/coreutils';
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';
import { DistError } from '../errors';
import { KnownGroups } from './knowngroups';
import { Liveness } from './liveness';
import type {
  ICommMessage,
  ICommRequest,
  IErrorBody,
  IErrorMessage,
  IExecution,
  IGroup,
  IRunRequest,
  ISubmitMessage,
  ISubmittedMessage,
  ServerMessage,
  Topic,
  TopicMessage
} from '../protocol';
import { ITopicEntry, ITopicHandler, ITopicSubscription, messageKey, topicKey, Topics } from './topics';
import { translation } from '../translation';

/** The server closes a connection that sends a larger message. */
export const MAX_MESSAGE_BYTES = 64 * 1024;

/** A message to a widget that is refused is refused soon. */
const MAX_REFUSALS = 200;

/** A cell is answered at once; after this time, the connection is probably lost. */
const SUBMIT_MS = 10000;

/** The answer to a cell that was sent here, or that there is none. */
export type Submitted = IExecution | 'unsent' | 'unanswered';

export class Channel implements IDisposable {
  constructor(settings: ServerConnection.ISettings) {
    this._settings = settings;
    this._poll = new Poll({
      auto: false,
      factory: () => this._connect(),
      frequency: { interval: 500, backoff: 2, max: 15000 },
      standby: 'never'
    });
  }

  /** Emits all groups when one changed. */
  get groups(): ISignal<this, IGroup[]> {
    return this._groups;
  }

  /** Emits true when connected, false when disconnected. */
  get connection(): ISignal<this, boolean> {
    return this._connection;
  }

  get connected(): boolean {
    return this._socket?.readyState === 1;
  }

  /** How long the last try to connect was not answered, in seconds; null if it was answered, also by a refusal. */
  get unopenedSeconds(): number | null {
    return this._liveness.unopenedSeconds;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Connect, and stay connected until disposed. */
  start(): void {
    void this._poll.start();
    window.addEventListener('online', this._onNetwork);
    window.addEventListener('offline', this._onNetwork);
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    window.removeEventListener('online', this._onNetwork);
    window.removeEventListener('offline', this._onNetwork);
    this._poll.dispose();
    this._topics.clear();
    this._drop();
    Signal.clearData(this);
  }

  subscribe(topic: Topic, handler: ITopicHandler): ITopicSubscription {
    const entry = this._topics.add(topic, handler);
    // The server has subscribed this page to the executions that it submits.
    if (!this._granted.delete(topicKey(topic))) {
      this._sendSubscribe(entry);
    }
    const subscription = new DisposableDelegate(() => {
      if (this._topics.remove(entry, handler)) {
        this._send({ type: 'unsubscribe', ...topic });
      }
    });
    return Object.assign(subscription, {
      resubscribe: () => this._sendSubscribe(entry)
    }) as ITopicSubscription;
  }

  /**
   * Run a cell. If it was not sent, or it is not known whether it arrived, the caller sends it by REST with the same
   * key, and the server does not run it twice. Rejects with the server's DistError.
   */
  submit(group: string, cell: IRunRequest, key: string): Promise<Submitted> {
    const message: ISubmitMessage = { type: 'submit', key, group, cell };
    if (!this.connected) {
      return Promise.resolve('unsent');
    }
    const answer = new PromiseDelegate<Submitted>();
    this._pending.set(key, answer);
    if (!this._send(message)) {
      this._pending.delete(key);
      return Promise.resolve('unsent');
    }
    const timer = setTimeout(() => answer.resolve('unanswered'), SUBMIT_MS);
    return answer.promise.finally(() => {
      clearTimeout(timer);
      this._pending.delete(key);
    });
  }

  /**
   * Send a message to a widget. False if it cannot be sent here: the caller sends it by REST. `refused` is called if the
   * server does not pass it on.
   */
  sendComm(
    group: string,
    rank: number,
    kind: ICommRequest['kind'],
    content: string,
    key: string,
    refused: (error: DistError) => void
  ): boolean {
    const message: ICommMessage = { type: 'comm', key, group, rank, kind, content };
    if (!this.connected || !this._send(message)) {
      return false;
    }
    this._refusals.set(key, refused);
    if (this._refusals.size > MAX_REFUSALS) {
      this._refusals.delete(this._refusals.keys().next().value!);
    }
    return true;
  }

  /**
   * One cycle of the poll, which lasts as long as the connection. A connection
   * that never opened, or not in time, rejects, and the poll backs off.
   */
  private _connect(): Promise<void> {
    this._drop();
    return new Promise((resolve, reject) => {
      const socket = new this._settings.WebSocket(channelUrl(this._settings));
      this._socket = socket;
      this._liveness.opening();
      let wasOpen = false;
      socket.onopen = () => {
        wasOpen = true;
        this._liveness.start();
        this._followGroups();
        for (const entry of this._topics.entries) {
          this._sendSubscribe(entry);
        }
        this._connection.emit(true);
      };
      socket.onmessage = event => {
        this._liveness.heard();
        this._onMessage(event.data as string);
      };
      socket.onclose = this._onClose = () => {
        this._drop();
        this._connection.emit(false);
        if (wasOpen) {
          resolve();
        } else {
          reject(new Error('The WebSocket to the Jupyter server could not be opened.'));
        }
      };
    });
  }

  private _onMessage(data: string): void {
    const message = JSON.parse(data) as ServerMessage;
    if (message.type === 'hello') {
      return;
    }
    if (message.type === 'changes') {
      const groups = this._known.apply(message);
      if (groups) {
        this._groups.emit(groups);
      } else {
        this._followGroups();
      }
      return;
    }
    if (message.type === 'submitted') {
      this._onSubmitted(message);
      return;
    }
    if (message.type !== 'error' || !this._onRefused(message)) {
      this._dispatch(message);
    }
  }

  /** Handle the error for a message that was not a subscription; false if it is for one. */
  private _onRefused({ error, request }: IErrorMessage): boolean {
    const key = String(request?.key);
    if (request?.type === 'submit') {
      this._pending.get(key)?.reject(new DistError(error));
    } else if (request?.type === 'comm') {
      this._refusals.get(key)?.(new DistError(error));
    } else {
      return false;
    }
    return true;
  }

  private _dispatch(message: TopicMessage): void {
    const key = messageKey(message);
    const entry = key === null ? undefined : this._topics.find(key);
    if (key !== null && !entry && this._granted.delete(key)) {
      // No subscriber follows the execution.
      const [topic, group, execution] = JSON.parse(key) as string[];
      this._send({ type: 'unsubscribe', topic, group, execution });
    }
    if (entry) {
      this._topics.dispatch(entry, message);
    } else if (message.type === 'error') {
      console.warn(describe(message.error));
    }
  }

  /** Ask for all groups, and then for their changes. */
  private _followGroups(): void {
    this._known = new KnownGroups();
    this._send({ type: 'subscribe', topic: 'groups', by_field: true });
  }

  private _onSubmitted({ key, execution }: ISubmittedMessage): void {
    const pending = this._pending.get(key);
    if (pending) {
      this._granted.add(topicKey({ topic: 'execution', group: execution.group, execution: execution.id }));
      pending.resolve(execution);
    }
  }

  private _sendSubscribe(entry: ITopicEntry): void {
    this._topics.asked(entry);
    const cursors = [...entry.handlers].filter(handler => handler.since).map(handler => handler.since!());
    // Use the lowest cursor: the other followers ignore known data.
    const cursor = cursors.length ? { since: Math.min(...cursors) } : {};
    if (!this._send({ type: 'subscribe', ...entry.topic, ...cursor })) {
      // Not now: subscribers do not expect an answer before they have the subscription.
      void Promise.resolve().then(() => this._refuse(entry));
    }
  }

  /** Send if connected; false if the message is too large, because the server would close the connection. */
  private _send(message: object): boolean {
    const text = JSON.stringify(message);
    if (new TextEncoder().encode(text).length > MAX_MESSAGE_BYTES) {
      return false;
    }
    // If not connected, nothing is lost: all topics are subscribed on connecting.
    if (this._socket?.readyState === 1) {
      this._socket.send(text);
      this._liveness.sent();
    }
    return true;
  }

  /** Report a request that is too large to its followers, and keep the connection. */
  private _refuse(entry: ITopicEntry): void {
    const trans = translation();
    const error = {
      code: 'too_large',
      message: trans.__('The request is too large for the server.'),
      hint: trans.__('A group or execution id is invalid. Run the cell again.')
    };
    this._topics.dispatch(entry, { type: 'error', error, request: { ...entry.topic } });
  }

  private _drop(): void {
    const socket = this._socket;
    this._socket = null;
    this._liveness.stop();
    this._granted.clear();
    for (const pending of this._pending.values()) {
      pending.resolve('unanswered');
    }
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  private _connection = new Signal<this, boolean>(this);
  /** Topics that the server follows for this page, until it follows them itself. */
  private _granted = new Set<string>();
  private _groups = new Signal<this, IGroup[]>(this);
  private _isDisposed = false;
  private _known = new KnownGroups();
  /** All groups are answered at once. Of a dead connection the browser may report only after minutes that it was closed. */
  private readonly _liveness = new Liveness({ ask: () => this._followGroups(), lost: () => this._onClose() });
  /** Connect again: the connection was closed, or is dead. */
  private _onClose: () => void = () => undefined;
  /** The cells that were sent and not answered, by their key. */
  private _pending = new Map<string, PromiseDelegate<Submitted>>();
  /** The browser's network changed: a connection may be dead, or possible again. */
  private readonly _onNetwork = (): void => {
    this._liveness.doubt();
    if (!this._socket) {
      void this._poll.refresh();
    }
  };
  private _poll: Poll<void, Error>;
  /** For the last messages to widgets, by their key. */
  private _refusals = new Map<string, (error: DistError) => void>();
  private _settings: ServerConnection.ISettings;
  private _socket: WebSocket | null = null;
  private _topics = new Topics(entry => this._sendSubscribe(entry));
}

function channelUrl(settings: ServerConnection.ISettings): string {
  const url = URLExt.join(settings.wsUrl, 'jupyter-dist', 'api', 'channel');
  return settings.appendToken && settings.token ? `${url}?token=${encodeURIComponent(settings.token)}` : url;
}

function describe(error: IErrorBody): string {
  return `jupyter_dist: ${error.message} ${error.hint ?? ''}`;
}
