/** Cells on ranks: submits them and follows their output. */
import { PromiseDelegate } from '@lumino/coreutils';
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { DistError, isPassing } from '../../services/errors';
import {
  FINAL_STATES,
  IErrorBody,
  IExecution,
  IRunRequest,
  IViewItem,
  IViewMessage,
  TopicMessage
} from '../../services/protocol';
import type { ITopicHandler, ITopicSubscription } from '../../services/channel/topics';
import { translation } from '../../services/translation';
import type { IDistExecutions, IDistService, IFollowedChange, IFollowedExecution, IFollower } from '../../tokens';
import { ViewModel } from './executionview';
import { OwnExecutions } from './ownexecutions';

/** How often a view is requested again before giving up. */
const MAX_GAPS = 5;

/** The server answers a subscription at once; after this time, the request or the answer was lost. */
const ANSWER_MS = 10000;

/** The part of the service that this model needs. */
type ExecutionsSource = Pick<IDistService, 'submit' | 'cancel' | 'subscribe'>;

export class ExecutionsModel implements IDistExecutions {
  constructor(service: ExecutionsSource) {
    this._service = service;
  }

  get followed(): ISignal<this, string> {
    return this._followed;
  }

  async run(group: string, request: IRunRequest): Promise<IExecution> {
    const execution = await this._service.submit(group, request);
    this._own.add(execution.id);
    return execution;
  }

  isOwn(execution: string): boolean {
    return this._own.has(execution);
  }

  async cancel(group: string, execution: string): Promise<void> {
    await this._service.cancel(group, execution);
  }

  follow(group: string, execution: string): IFollower {
    const known = this._entries.get(execution);
    const entry = known ?? {
      model: new FollowedExecution(this._service, group, execution),
      count: 0
    };
    entry.count++;
    this._entries.set(execution, entry);
    const release = new DisposableDelegate(() => this._release(execution));
    if (!known) {
      this._followed.emit(execution);
    }
    return Object.assign(release, { followed: entry.model }) as IFollower;
  }

  find(execution: string): IFollowedExecution | null {
    return this._entries.get(execution)?.model ?? null;
  }

  private _release(execution: string): void {
    const entry = this._entries.get(execution);
    if (entry && --entry.count === 0) {
      this._entries.delete(execution);
      entry.model.dispose();
    }
  }

  private _entries = new Map<string, { model: FollowedExecution; count: number }>();
  private _followed = new Signal<this, string>(this);
  private readonly _own = new OwnExecutions();
  private _service: ExecutionsSource;
}

/** One execution, followed through the WebSocket. */
export class FollowedExecution implements IFollowedExecution, ITopicHandler, IDisposable {
  constructor(
    service: Pick<IDistService, 'subscribe'>,
    readonly group: string,
    readonly id: string
  ) {
    this._subscription = service.subscribe({ topic: 'execution', group, execution: id }, this);
    this._ask();
  }

  get execution(): IExecution | null {
    return this._execution;
  }

  get items(): readonly IViewItem[] {
    return this._view.items;
  }

  get error(): IErrorBody | null {
    return this._error;
  }

  get isEnded(): boolean {
    return this._isEnded;
  }

  get changed(): ISignal<this, IFollowedChange> {
    return this._changed;
  }

  get ended(): Promise<void> {
    return this._ended.promise;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    clearInterval(this._asking);
    this._subscription.dispose();
    Signal.clearData(this);
  }

  since(): number {
    return this._view.seq;
  }

  receive(message: TopicMessage): void {
    clearInterval(this._asking);
    if (message.type === 'view') {
      this._applyView(message);
    } else if (message.type === 'execution') {
      this._applyExecution(message.execution);
    } else if (message.type === 'error' && !isPassing(message.error)) {
      this._fail(message.error);
    }
  }

  /** Subscribe again until the server answers. */
  private _ask(): void {
    this._asking = setInterval(() => this._subscription.resubscribe(), ANSWER_MS);
  }

  private _applyView(message: IViewMessage): void {
    const applied = this._view.apply(message);
    if (applied === 'applied') {
      this._gaps = 0;
      this._changed.emit({ execution: false, items: true });
      this._endIfComplete();
    } else if (applied === 'gap') {
      this._recover();
    }
  }

  private _applyExecution(execution: IExecution): void {
    if (this._isEnded) {
      return;
    }
    this._execution = execution;
    this._changed.emit({ execution: true, items: false });
    this._endIfComplete();
  }

  /**
   * The server sends a final state after the last item of the view. But if the
   * view was requested again, the state may arrive first.
   */
  private _endIfComplete(): void {
    const state = this._execution?.state;
    if (!this._isEnded && state && FINAL_STATES.has(state) && !this._gaps) {
      this._isEnded = true;
      this._changed.emit({ execution: true, items: false });
      this._ended.resolve();
    }
  }

  private _recover(): void {
    if (++this._gaps > MAX_GAPS) {
      const trans = translation();
      this._fail(
        new DistError({
          code: 'bad_response',
          message: trans.__('The output of the ranks could not be loaded.'),
          hint: trans.__('Reload the page. The full output is in the rank output panel.')
        })
      );
      return;
    }
    console.warn('jupyter_dist: requesting a view again after a gap');
    // The current items may be the cause: request everything.
    this._view.restart();
    this._subscription.resubscribe();
  }

  private _fail({ code, message, hint }: IErrorBody): void {
    if (this._isEnded) {
      return;
    }
    this._error = { code, message, hint };
    this._isEnded = true;
    this._subscription.dispose(); // not to be asked for again
    this._changed.emit({ execution: true, items: false });
    this._ended.resolve();
  }

  private _asking: ReturnType<typeof setInterval> | undefined;
  private _changed = new Signal<this, IFollowedChange>(this);
  private _ended = new PromiseDelegate<void>();
  private _error: IErrorBody | null = null;
  private _execution: IExecution | null = null;
  private _gaps = 0;
  private _isDisposed = false;
  private _isEnded = false;
  private _subscription: ITopicSubscription;
  private _view = new ViewModel();
}
