/**
 * The face of a kernel's session for the debuggers of ranks: the part that JupyterLab's debugger uses of it. What changes
 * something goes to all ranks, what asks for something to the first.
 */
import type { Kernel, KernelMessage, Session } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { IService } from '../../services/service';
import { parseRanks } from '../format/ranks';
import type { IGroup } from '../../services/protocol';

type Content = KernelMessage.IDebugRequestMsg['content'];

/** Requests for all ranks. Steps are for those that are stopped: a rank that runs answers that it is not. */
const FOR_ALL = new Set([
  ...['initialize', 'attach', 'configurationDone', 'disconnect', 'dumpCell', 'setBreakpoints'],
  ...['setExceptionBreakpoints', 'continue', 'next', 'stepIn', 'stepOut', 'pause']
]);
const WAIT_SECONDS = 8;
const RETRY_MS = 2000;

interface IReply {
  success?: boolean;
  message?: string;
  body?: { isStarted?: boolean };
}

export interface IDebugConnectionOptions {
  /** Another one is another connection. */
  id: string;
  service: IService;
  group: IGroup;
  /** A rank expression. */
  ranks: string;
  /** The path of the notebook. */
  path: string;
  /** Say why the debugger could not be started. */
  onProblem(message: string): void;
}

export class DebugConnection implements IDisposable {
  constructor(options: IDebugConnectionOptions) {
    this._options = options;
    const { id, group, ranks, path } = options;
    this.path = path;
    this.name = `${group.name}: rank ${parseRanks(ranks, group)[0]}`;
    this.id = id;
    this.kernel = {
      id: this.id,
      name: `jupyter-dist ${group.id}`,
      requestDebug: (content: Content) => this._request(content)
    };
  }

  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly kernel: object;
  // What JupyterLab connects to.
  readonly anyMessage = new Signal<this, unknown>(this);
  readonly disposed = new Signal<this, void>(this);
  readonly iopubMessage = new Signal<this, unknown>(this);
  readonly kernelChanged = new Signal<this, unknown>(this);
  readonly statusChanged = new Signal<this, string>(this);

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Itself, as what JupyterLab takes. */
  get session(): Session.ISessionConnection {
    return this as unknown as Session.ISessionConnection;
  }

  /** A cell has ended: JupyterLab asks for the variables again. */
  cellEnded(): void {
    this.iopubMessage.emit({ header: { msg_type: 'status' }, parent_header: { msg_type: 'execute_request' }, content: {} });
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      if (this._isStarted) {
        void this._ask({ type: 'request', seq: 0, command: 'disconnect', arguments: {} }, this._options.ranks).catch(() => undefined);
      }
      this.disposed.emit();
      Signal.clearData(this);
    }
  }

  private _request(content: Content): Kernel.IControlFuture {
    const future = {
      onReply: (() => undefined) as (message: unknown) => void,
      dispose: (): void => undefined,
      done: Promise.resolve() as Promise<unknown>
    };
    // The handler is set after this returns.
    future.done = Promise.resolve()
      .then(() => this._reply(content))
      .then(reply => {
        const message = { header: { msg_id: UUID.uuid4(), msg_type: 'debug_reply' }, content: reply };
        future.onReply(message);
        return message;
      });
    return future as unknown as Kernel.IControlFuture;
  }

  private async _reply(content: Content): Promise<object> {
    const { group, ranks } = this._options;
    const { command, seq } = content;
    const to = FOR_ALL.has(command) ? ranks : String(parseRanks(ranks, group)[0]);
    let reply: IReply;
    try {
      reply = await this._ask(content, to);
    } catch (reason) {
      const message = reason instanceof Error ? reason.message : String(reason);
      reply = { type: 'response', request_seq: seq, success: false, command, message, body: EMPTY } as IReply;
    }
    this._look(command, reply);
    return reply;
  }

  /** Follow the events from when it is attached until it is not. */
  private _look(command: string, reply: IReply): void {
    if (command === 'initialize' && reply.success === false) {
      this._options.onProblem(reply.message ?? '');
    } else if (command === 'disconnect') {
      this._isStarted = false;
    } else if (command === 'attach' ? reply.success : command === 'debugInfo' && reply.body?.isStarted) {
      this._start();
    }
  }

  /** The reply of the first rank, or that of the first one that failed to begin. */
  private async _ask(content: Content, ranks: string): Promise<{ success?: boolean }> {
    const { service, group } = this._options;
    const { replies } = await service.debug(group.id, { ranks, message: content as unknown as Record<string, unknown> });
    const contents = replies.map(reply => reply.content as { success?: boolean });
    const begins = content.command === 'initialize' || content.command === 'attach';
    return (begins && contents.find(reply => reply.success === false)) || contents[0];
  }

  /** Ask for events from now on. A debugger that nobody asks is detached by its rank. */
  private _start(): void {
    if (!this._isStarted) {
      this._isStarted = true;
      void this._follow();
    }
  }

  private async _follow(): Promise<void> {
    const { group, ranks } = this._options;
    const [first, ...others] = parseRanks(ranks, group);
    const message = (command: string, args: object): Content =>
      ({ type: 'request', seq: 0, command, arguments: args }) as unknown as Content;
    while (this._isStarted && !this._isDisposed) {
      try {
        if (others.length > 0) {
          void this._ask(message('debugInfo', {}), others.join(',')).catch(() => undefined);
        }
        const reply = await this._ask(message('events', { since: this._since, wait: WAIT_SECONDS }), String(first));
        const { events, seq, isStarted } = (reply as { body: { events: { event: string }[]; seq: number; isStarted: boolean } }).body;
        this._since = seq;
        for (const event of events) {
          this.iopubMessage.emit({ header: { msg_type: 'debug_event' }, parent_header: {}, content: event });
        }
        this._isStarted = this._isStarted && isStarted;
      } catch {
        await new Promise(resolve => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  private _isDisposed = false;
  private _isStarted = false;
  private _options: IDebugConnectionOptions;
  private _since = 0;
}

/** Of a request that failed: JupyterLab reads these without looking. */
const EMPTY = {
  ...{ variables: [], breakpoints: [], stackFrames: [], scopes: [], modules: [], stoppedThreads: [] },
  ...{ isStarted: false, hashMethod: 'Murmur2', hashSeed: 0, tmpFilePrefix: '', tmpFileSuffix: '' }
};
