/** The widgets of a group's ranks on this page, in one notebook: follows them, and has JupyterLab's manager show them. */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IManager, IWidgetModel } from '@jupyter-widgets/jupyterlab-manager';
import { PromiseDelegate } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { DistError } from '../../../services/errors';
import type { ICommNews, ICommsMessage, ICommState, IErrorBody, TopicMessage } from '../../../services/protocol';
import type { ITopicSubscription } from '../../../services/channel/topics';
import type { IDistService } from '../../../tokens';
import { RankKernel } from './rankkernel';
import { isShared, SharedWidgets } from './shared';
import { WidgetStates } from './states';

type Context = DocumentRegistry.IContext<INotebookModel>;
type Manager = typeof import('@jupyter-widgets/jupyterlab-manager');

/** A rank that runs a cell handles messages after it; shorter waits are not mentioned. */
const WAIT_MS = 700;
/** The server answers a subscription at once. */
const ANSWER_MS = 15000;

export interface ISpaceOptions {
  service: Pick<IDistService, 'subscribe' | 'sendToWidget'>;
  group: string;
  /** The registry with which the notebook shows outputs. */
  rendermime: IRenderMimeRegistry;
  /** The notebook; null elsewhere. */
  context: Context | null;
  library: Manager;
}

/** What is shown beside the widgets of a rank. */
export interface ITrouble {
  kind: 'waits' | 'refused' | 'dead';
  error: IErrorBody | null;
}

export class WidgetSpace implements IDisposable {
  constructor({ service, group, context, rendermime, library }: ISpaceOptions) {
    this._kernel = new RankKernel({
      id: `jupyter-dist-${group}-${nextId++}`,
      send: (rank, kind, content) => service.sendToWidget(group, rank, kind, content),
      placesOf: id => this._shared.placesOf(id),
      onSent: (rank, id) => this._onSent(rank, id),
      onHandled: (rank, _, reason) => this._onHandled(rank, reason)
    });
    this._shared = new SharedWidgets(this._states, this._kernel, () => this._sharedChanged.emit());
    const managed = {
      set manager(manager: IManager) {
        found.resolve(manager);
      }
    };
    const found = this._manager;
    const face = faceOf(this._kernel, context) as unknown as Context;
    this._registration = library.registerWidgetManager(face, rendermime.clone(), [managed].values());
    context?.disposed.connect(this.dispose, this);
    this._subscription = service.subscribe({ topic: 'comms', group }, this);
    this._timer = setTimeout(() => this._ready.resolve(), ANSWER_MS);
  }

  /** Resolves when the widgets are known, or the server has not answered. */
  get ready(): Promise<void> {
    return this._ready.promise;
  }

  get manager(): Promise<IManager> {
    return this._manager.promise;
  }

  /** Why there are none. */
  get error(): IErrorBody | null {
    return this._error;
  }

  /** Emitted when widgets were opened: a view can come before its widget. */
  get opened(): ISignal<this, void> {
    return this._opened;
  }

  /** Emitted with a rank when `troubleOf` may be different. */
  get troubleChanged(): ISignal<this, number> {
    return this._troubleChanged;
  }

  get isDisposed(): boolean {
    return this._kernel.isDisposed;
  }

  /** Emitted when `findShared` may return something else. */
  get sharedChanged(): ISignal<this, void> {
    return this._sharedChanged;
  }

  /** The ranks of a widget. */
  ranksOf(model: string): number[] {
    return this._kernel.ranksOf(model);
  }

  /** The widget that stands for these of all ranks, which are given by rank; null if they are not equal. */
  findShared(roots: ReadonlyMap<number, string>): string | null {
    return this._shared.find(roots);
  }

  /** Whether there is such a widget, or was one when the notebook was saved. */
  async has(model: string): Promise<boolean> {
    await this.ready;
    await (isShared(model) ? this._shared.ready : null);
    const manager = await this.manager;
    await Promise.resolve();
    return this._kernel.hasComm(model) || manager.has_model(model);
  }

  troubleOf(rank: number): ITrouble | null {
    return this._troubles.get(rank) ?? null;
  }

  dispose(): void {
    if (!this.isDisposed) {
      clearTimeout(this._timer);
      this._subscription.dispose();
      this._shared.dispose();
      this._kernel.dispose();
      this._registration.dispose();
      Signal.clearData(this);
    }
  }

  // -- from the server ----------------------------------------------------------------------------------

  receive(message: TopicMessage): void {
    if (message.type === 'comms') {
      this._chain = this._chain.then(() => this._take(message)).catch(reason => console.error(reason));
    } else if (message.type === 'error') {
      this._error = message.error;
      this._ready.resolve();
    }
  }

  private async _take({ comms, messages }: ICommsMessage): Promise<void> {
    if (this.isDisposed) {
      return;
    }
    await this.manager;
    if (comms) {
      this._error = null;
      await this._takeAll(comms);
      clearTimeout(this._timer);
      this._ready.resolve();
    }
    for (let at = 0; at < messages.length; at++) {
      const opened = messages.slice(at).findIndex(({ kind }) => kind !== 'comm_open');
      const count = opened < 0 ? messages.length - at : opened;
      messages.slice(at, at + count).forEach(message => this._states.open(message));
      await this._kernel.open(messages.slice(at, at + count));
      at += count;
      if (at < messages.length) {
        await this._takeOne(messages[at]).catch(reason => console.error(reason)); // others are of other widgets
      }
    }
    this._shared.lookSoon();
    this._opened.emit();
  }

  private async _takeAll(comms: readonly ICommState[]): Promise<void> {
    this._kernel.forgetSent();
    this._states.reset(comms);
    const now = new Set(comms.map(comm => comm.comm_id));
    await this._setLive(
      this._kernel.ids().filter(id => !now.has(id)),
      false
    );
    const isKnown = ({ comm_id }: ICommState): boolean => this._kernel.hasComm(comm_id);
    const known = comms.filter(isKnown);
    await this._kernel.open(comms.filter(comm => !isKnown(comm) && comm.is_kept));
    for (const comm of known) {
      const news: ICommNews = { ...comm, seq: 0, kind: 'comm_msg', data: { method: 'update', ...comm.data } };
      void this._shared.follow(news);
      await this._kernel.say(news).catch(reason => console.error(reason));
    }
    for (const { rank, live } of comms) {
      if (live === (this._troubles.get(rank) === DEAD)) {
        this._setTrouble(rank, live ? null : DEAD);
      }
    }
    for (const live of [true, false]) {
      await this._setLive(
        comms.filter(comm => comm.live === live).map(comm => comm.comm_id),
        live
      );
    }
  }

  private async _takeOne(news: ICommNews): Promise<void> {
    switch (news.kind) {
      case 'comm_msg':
        this._states.say(news);
        void this._shared.follow(news);
        return this._kernel.say(news);
      case 'comm_close':
        this._states.close(news.comm_id!);
        void this._shared.follow(news);
        return this._kernel.close(news);
      case 'comm_done':
        return this._kernel.handled(news.msg_id!, news.rank);
      case 'dead':
        this._kernel.forgetSent(news.rank);
        this._shared.died(news.rank);
        this._setTrouble(news.rank, DEAD);
        return this._setLive(this._kernel.ids(news.rank), false);
    }
  }

  /** Mark widgets as live, or as widgets of a dead kernel, which JupyterLab shows with a broken link. */
  private async _setLive(ids: readonly string[], live: boolean): Promise<void> {
    const manager = await this.manager;
    const models = ids.filter(id => manager.has_model(id)).map(id => manager.get_model(id) as Promise<IWidgetModel>);
    for (const model of await Promise.all(models)) {
      if (model.comm_live !== live) {
        model.comm_live = live;
      }
    }
  }

  // -- to ranks -----------------------------------------------------------------------------------------

  private _onSent(rank: number, id: string): void {
    if (!isShared(id)) {
      this._shared.used(id);
    }
    if (!this._waits.has(rank)) {
      this._waits.set(
        rank,
        setTimeout(() => this._setTrouble(rank, { kind: 'waits', error: null }), WAIT_MS)
      );
    }
  }

  private _onHandled(rank: number, reason: unknown): void {
    if (reason) {
      this._setTrouble(rank, { kind: 'refused', error: bodyOf(reason) });
    }
    if (!this._kernel.waitsFor(rank)) {
      clearTimeout(this._waits.get(rank));
      this._waits.delete(rank);
      if (!reason) {
        this._setTrouble(rank, null);
      }
    }
  }

  private _setTrouble(rank: number, trouble: ITrouble | null): void {
    if (trouble || this._troubles.has(rank)) {
      if (trouble) {
        this._troubles.set(rank, trouble);
      } else {
        this._troubles.delete(rank);
      }
      this._troubleChanged.emit(rank);
    }
  }

  private _chain: Promise<void> = Promise.resolve();
  private _error: IErrorBody | null = null;
  private _kernel: RankKernel;
  private _manager = new PromiseDelegate<IManager>();
  private _opened = new Signal<this, void>(this);
  private _ready = new PromiseDelegate<void>();
  private _registration: IDisposable;
  private _shared: SharedWidgets;
  private _sharedChanged = new Signal<this, void>(this);
  private _states = new WidgetStates();
  private _subscription: ITopicSubscription;
  private _timer: ReturnType<typeof setTimeout>;
  private _troubleChanged = new Signal<this, number>(this);
  private _troubles = new Map<number, ITrouble>();
  private _waits = new Map<number, ReturnType<typeof setTimeout>>();
}

let nextId = 1;

const DEAD: ITrouble = { kind: 'dead', error: null };

function bodyOf(reason: unknown): IErrorBody {
  const { code, message, hint } =
    reason instanceof DistError ? reason : { code: '', message: String(reason), hint: '' };
  return { code, message, hint };
}

const STATE_MIME = 'application/vnd.jupyter.widget-state+json';

/** The notebook as a document of our kernel: the manager reads the widgets that were saved in it, and saves ours. */
function faceOf(kernel: RankKernel, context: Context | null): object {
  const owner = {};
  const signal = (): Signal<object, unknown> => new Signal<object, unknown>(owner);
  const sessionContext = {
    ready: Promise.resolve(),
    isReady: true,
    session: { kernel },
    kernelChanged: signal(),
    statusChanged: signal(),
    connectionStatusChanged: signal(),
    disposed: signal()
  };
  return {
    sessionContext,
    path: context?.path ?? '',
    urlResolver: context?.urlResolver,
    saveState: context?.saveState ?? signal(),
    disposed: signal(),
    model: {
      getMetadata: (name: string): unknown => context?.model.getMetadata(name),
      setMetadata: (name: string, value: Record<string, { state: object }>): void =>
        context?.model.setMetadata(name, merged(context.model.getMetadata(name) as typeof value | undefined, value)),
      set dirty(dirty: boolean) {
        if (context) {
          context.model.dirty = dirty;
        }
      }
    }
  };
}

/** Keep the widgets of the notebook's kernel and of other groups. */
function merged(
  before: Record<string, { state: object }> | undefined,
  own: Record<string, { state: object }>
): Record<string, { state: object }> {
  const ofRanks = Object.entries(own[STATE_MIME].state).filter(([id]) => !isShared(id));
  const state = { ...before?.[STATE_MIME]?.state, ...Object.fromEntries(ofRanks) };
  return { ...before, [STATE_MIME]: { ...own[STATE_MIME], state } };
}
