/**
 * The face of a kernel for JupyterLab's widget manager: the comms of all ranks of a group, over the page's WebSocket
 * (decision 20). It has what the manager uses of a kernel connection, and runs nothing.
 */
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { JSONObject, PromiseDelegate, UUID } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ICommNews, ICommRequest, ICommState } from '../../../services/protocol';
import type { ICommContent } from '../../../services/service';
import { decodeBuffers, encodeBuffers } from './buffers';
import { IRankWidget, NO_RANK } from './shared';

type Opens = (comm: Kernel.IComm, message: KernelMessage.ICommOpenMsg) => void | PromiseLike<void>;
type Buffers = (ArrayBuffer | ArrayBufferView)[];

/** A message of a rank, in the form that it would have come in from a kernel. */
type Said = Pick<ICommNews, 'comm_id' | 'target_name' | 'data' | 'metadata' | 'buffers' | 'parent'>;

export interface IRankKernelOptions {
  /** Unique on the page. */
  id: string;
  /** The widgets of ranks that a widget without a rank stands for. */
  placesOf(commId: string): IRankWidget[];
  /** Send a message to a widget of a rank. Rejects with the server's DistError. */
  send(rank: number, kind: ICommRequest['kind'], content: ICommContent): Promise<void>;
  /** A message was sent, and is handled (or never will be). */
  onSent(rank: number, commId: string): void;
  onHandled(rank: number, msgId: string, reason: unknown): void;
}

export class RankKernel implements IDisposable {
  constructor(private readonly _options: IRankKernelOptions) {
    this.id = _options.id;
  }

  readonly id: string;
  readonly name = 'ranks';
  readonly status = 'idle';
  readonly connectionStatus = 'connected';
  /** The manager must not ask for all widgets: they are opened by `open`. */
  readonly handleComms = false;
  readonly statusChanged = new Signal<this, Kernel.Status>(this);
  readonly connectionStatusChanged = new Signal<this, Kernel.ConnectionStatus>(this);
  readonly disposed = new Signal<this, void>(this);

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this.disposed.emit();
      Signal.clearData(this);
      this._comms.clear();
    }
  }

  // -- what the manager calls ---------------------------------------------------------------------------

  registerCommTarget(name: string, opens: Opens): void {
    this._targets.set(name, opens);
  }

  removeCommTarget(name: string, opens: Opens): void {
    if (this._targets.get(name) === opens) {
      this._targets.delete(name);
    }
  }

  hasComm(id: string): boolean {
    return this._comms.has(id);
  }

  createComm(target: string, id: string = UUID.uuid4()): Kernel.IComm {
    // eslint-disable-next-line jupyter/require-disposable-ownership -- the caller owns it
    return (this._comms.get(id) ?? new RankComm(this, target, id, null)) as unknown as Kernel.IComm;
  }

  async requestCommInfo(): Promise<unknown> {
    return { content: { status: 'ok', comms: {} } };
  }

  /** Output widgets collect in their rank, so none listens for messages here. */
  registerMessageHook(): void {
    /* Nothing comes. */
  }

  removeMessageHook(): void {
    /* Nothing comes. */
  }

  // -- from ranks ---------------------------------------------------------------------------------------

  /** The ranks of an open comm; none if there is no such comm. */
  ranksOf(id: string): number[] {
    const comm = this._comms.get(id);
    return comm ? this._placesOf(comm).map(({ rank }) => rank) : [];
  }

  /** The ids of the open comms of a rank, or of all ranks. */
  ids(rank?: number): string[] {
    const isMeant = (comm: RankComm): boolean => comm.rank !== null && (rank ?? comm.rank) === comm.rank;
    return [...this._comms.values()].filter(isMeant).map(comm => comm.commId);
  }

  /** Open comms. All at once, because widgets name each other; a failure is logged, and the others open. */
  async open(comms: readonly (ICommState | ICommNews)[]): Promise<void> {
    await Promise.all(comms.map(comm => this._open(comm).catch(reason => console.error(reason))));
  }

  async say(news: Said): Promise<void> {
    await this._comms.get(news.comm_id!)?.onMsg?.(message('comm_msg', news) as KernelMessage.ICommMsgMsg);
  }

  async close(news: Said): Promise<void> {
    const comm = this._comms.get(news.comm_id!);
    this._comms.delete(news.comm_id!);
    await comm?.onClose?.(message('comm_close', news) as KernelMessage.ICommCloseMsg);
  }

  /** A rank has handled a message of this page, or never will. */
  handled(msgId: string, rank: number, reason: unknown = null): void {
    const sent = this._sent.get(msgId);
    if (sent?.ranks.delete(rank)) {
      if (sent.ranks.size === 0) {
        this._sent.delete(msgId);
        sent.future.settle();
      }
      this._options.onHandled(rank, msgId, reason);
    }
  }

  /** Stop waiting for answers to sent messages: of all ranks, or of one rank. */
  forgetSent(rank?: number): void {
    for (const [id, { ranks }] of [...this._sent]) {
      [...ranks].filter(each => each === (rank ?? each)).forEach(each => this.handled(id, each));
    }
  }

  /** Whether messages of this page wait for a rank. */
  waitsFor(rank: number): boolean {
    return [...this._sent.values()].some(({ ranks }) => ranks.has(rank));
  }

  /** Called by comms. */
  send(comm: RankComm, kind: ICommRequest['kind'], content: Omit<ICommContent, 'msg_id'>): SentMessage {
    const future = new SentMessage(UUID.uuid4());
    const places = this._placesOf(comm);
    if (places.length === 0) {
      // A widget that the page has made: no rank has its code.
      console.warn('jupyter_dist: widgets that are made in the page have no rank', comm.targetName);
      void Promise.resolve().then(() => future.settle());
      return future;
    }
    const { id } = future;
    this._sent.set(id, { ranks: new Set(places.map(({ rank }) => rank)), future });
    for (const { rank, comm_id, rename } of places) {
      this._options.onSent(rank, comm.commId);
      const own = { ...content, data: rename(content.data), comm_id, msg_id: id };
      this._options.send(rank, kind, own).catch(reason => this.handled(id, rank, reason));
    }
    return future;
  }

  private _placesOf({ commId, rank }: RankComm): IRankWidget[] {
    return rank === null ? this._options.placesOf(commId) : [{ rank, comm_id: commId, rename: data => data }];
  }

  private async _open(state: ICommState | ICommNews): Promise<void> {
    const target = state.target_name ?? '';
    const opens = this._targets.get(target);
    const comm = new RankComm(this, target, state.comm_id!, state.rank === NO_RANK ? null : state.rank);
    this._comms.set(comm.commId, comm);
    await opens?.(comm as unknown as Kernel.IComm, message('comm_open', state) as KernelMessage.ICommOpenMsg);
  }

  private _comms = new Map<string, RankComm>();
  private _isDisposed = false;
  private _sent = new Map<string, { ranks: Set<number>; future: SentMessage }>();
  private _targets = new Map<string, Opens>();
}

/** One comm, as JupyterLab's Kernel.IComm. */
class RankComm implements IDisposable {
  constructor(
    private readonly _kernel: RankKernel,
    readonly targetName: string,
    readonly commId: string,
    readonly rank: number | null
  ) {}

  onMsg: ((message: KernelMessage.ICommMsgMsg) => void | PromiseLike<void>) | undefined;
  onClose: ((message: KernelMessage.ICommCloseMsg) => void | PromiseLike<void>) | undefined;
  readonly disposed = new Signal<this, void>(this);
  isDisposed = false;

  open(data?: JSONObject, metadata?: JSONObject, buffers?: Buffers): SentMessage {
    return this._send('comm_open', data, metadata, buffers);
  }

  send(data?: JSONObject, metadata?: JSONObject, buffers?: Buffers): SentMessage {
    return this._send('comm_msg', data, metadata, buffers);
  }

  close(data?: JSONObject, metadata?: JSONObject, buffers?: Buffers): SentMessage {
    return this._send('comm_close', data, metadata, buffers);
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.isDisposed = true;
      this.disposed.emit();
      Signal.clearData(this);
    }
  }

  private _send(
    kind: ICommRequest['kind'],
    data: JSONObject = {},
    metadata: JSONObject = {},
    buffers: Buffers = []
  ): SentMessage {
    const content: Omit<ICommContent, 'msg_id'> = { comm_id: this.commId, data, metadata };
    if (kind === 'comm_open') {
      content.target_name = this.targetName;
    }
    if (buffers.length > 0) {
      content.buffers = encodeBuffers(buffers);
    }
    return this._kernel.send(this, kind, content);
  }
}

/** A message to a rank, as JupyterLab's IShellFuture. */
class SentMessage {
  constructor(readonly id: string) {
    this.msg = { header: { msg_id: id } };
  }

  readonly msg: { header: { msg_id: string } };
  onReply: unknown;
  onStdin: unknown;
  onIOPub: ((message: KernelMessage.IIOPubMessage) => void) | undefined;

  get done(): Promise<void> {
    return this._done.promise;
  }

  /** The rank has handled it: the manager may send the next. */
  settle(): void {
    const idle = {
      header: { msg_type: 'status' },
      parent_header: this.msg.header,
      content: { execution_state: 'idle' }
    };
    this.onIOPub?.(idle as unknown as KernelMessage.IIOPubMessage);
    this._done.resolve();
  }

  dispose(): void {
    this.onIOPub = undefined;
  }

  private _done = new PromiseDelegate<void>();
}

function message(kind: string, said: Said): unknown {
  return {
    channel: 'iopub',
    header: { msg_type: kind, msg_id: '' },
    parent_header: { msg_id: said.parent ?? '' },
    metadata: said.metadata ?? {},
    content: { comm_id: said.comm_id, target_name: said.target_name ?? '', data: said.data ?? {} },
    buffers: decodeBuffers(said.buffers)
  };
}
