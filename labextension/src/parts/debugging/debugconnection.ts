/**
 * The face of a kernel's session for the debuggers of ranks: the part that JupyterLab's debugger uses of it. What begins,
 * ends and sets breakpoints goes to all ranks; steps to all or to one; what asks for something to the rank that is shown.
 */
import type { Kernel, KernelMessage, Session } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import type { IDebugReply, IGroup } from '../../services/protocol';
import type { IService } from '../../services/service';
import { translation } from '../../services/translation';
import { parseRanks } from '../../model/format/ranks';
import { isAway, isStarting } from '../../model/format/states';
import { isGone } from '../../model/groups/groups';
import { CellFiles, fromLineOne } from './cellfiles';
import { RankStates } from './rankstates';

type DebugContent = KernelMessage.IDebugRequestMsg['content'];

/** Requests for all ranks. */
const FOR_ALL = new Set([
  'initialize',
  'attach',
  'configurationDone',
  'disconnect',
  'dumpCell',
  'setBreakpoints',
  'setExceptionBreakpoints'
]);
/** Requests for ranks to continue, together or alone. A running rank answers that it is not stopped. */
const STEPS = new Set(['continue', 'next', 'stepIn', 'stepOut', 'pause']);
const WAIT_SECONDS = 8;
const RETRY_MS = 2000;
const LOOK_MS = 20;
/** How long the page waits for the shown rank's answers before it shows another rank. */
const ANSWERED_MS = 3000;

interface IReply {
  success?: boolean;
  message?: string;
  body?: {
    isStarted?: boolean;
    stoppedThreads?: number[];
    events?: { event: string; [name: string]: unknown }[];
    seq?: number;
  };
}

export interface IDebugConnectionOptions {
  /** Another one is another connection. */
  id: string;
  service: IService;
  group: IGroup;
  /** The group as it is now; null when it is gone. */
  current(): IGroup | null;
  /** A rank expression. */
  ranks: string;
  /** The path of the notebook. */
  path: string;
  /** Show why the debugger could not be started. */
  onProblem(message: string): void;
}

export class DebugConnection implements IDisposable {
  constructor(options: IDebugConnectionOptions) {
    this._options = options;
    const { id, group, ranks, path } = options;
    this.path = path;
    this.id = id;
    this.ranks = parseRanks(ranks, group);
    this._shown = this.ranks[0];
    this.states = new RankStates({
      ask: (command, args, to) => this._askRanks(requestOf(command, args), to.join(',')),
      ranks: () => this._living(),
      isBusy: () => this._living().some(rank => !!this._group?.ranks[rank].execution_id)
    });
    this.states.changed.connect(this._onStates, this);
    this.kernel = {
      id: this.id,
      name: `jupyter-dist ${group.id}`,
      requestDebug: (content: DebugContent) => this._request(content)
    };
  }

  readonly id: string;
  readonly path: string;
  /** All that are debugged. */
  readonly ranks: readonly number[];
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

  readonly states: RankStates;

  /** Emitted when another rank is shown, and when the debugger is attached or detached. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when JupyterLab has read the stack again, after code in its console that may have changed variables. */
  get evaluated(): ISignal<this, void> {
    return this._evaluated;
  }

  /** Its name is the title of the panel. */
  get name(): string {
    return translation().__('%1: rank %2', this._options.group.name, this._shown);
  }

  get isStarted(): boolean {
    return this._isStarted;
  }

  /** The rank whose stack and variables the panel shows, and which its console asks. */
  get shown(): number {
    return this._shown;
  }

  /** Whether steps are for the shown rank alone. */
  get isAlone(): boolean {
    return this._isAlone;
  }

  set isAlone(alone: boolean) {
    this._isAlone = alone;
    this._changed.emit();
  }

  /** Show another rank. */
  show(rank: number): void {
    this._isKept = true;
    void this._show(rank);
  }

  /** A cell has begun or ended: JupyterLab asks for the variables again. */
  cellEnded(): void {
    this._isKept = false;
    if (this._isStarted) {
      this.states.refresh();
    }
    this._askVariables();
  }

  private _askVariables(): void {
    this.iopubMessage.emit({
      header: { msg_type: 'status' },
      parent_header: { msg_type: 'execute_request' },
      content: {}
    });
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      if (this._isStarted) {
        void this._ask(requestOf('disconnect', {}), this._living().join(',')).catch(() => undefined);
      }
      this.states.dispose();
      this.disposed.emit();
      Signal.clearData(this);
    }
  }

  private _request(content: DebugContent): Kernel.IControlFuture {
    const future = {
      onReply: (() => undefined) as (message: unknown) => void,
      dispose: (): void => undefined,
      done: Promise.resolve() as Promise<unknown>
    };
    this._unanswered += 1;
    // The handler is set after this returns.
    future.done = Promise.resolve()
      .then(() => this._reply(content))
      .finally(() => (this._unanswered -= 1))
      .then(reply => {
        const message = { header: { msg_id: UUID.uuid4(), msg_type: 'debug_reply' }, content: reply };
        future.onReply(message);
        this._onReplied(content.command);
        return message;
      });
    return future as unknown as Kernel.IControlFuture;
  }

  private _onReplied(command: string): void {
    if (command === 'stackTrace' && this._hasEvaluated) {
      // JupyterLab takes the frames first.
      setTimeout(() => this._evaluated.emit(), 0);
    }
    this._hasEvaluated = command === 'evaluate' || (this._hasEvaluated && command !== 'stackTrace');
  }

  private async _reply(content: DebugContent): Promise<object> {
    const { command, seq } = content;
    const isForAll = FOR_ALL.has(command) || (STEPS.has(command) && !this._isAlone);
    const to = isForAll ? this._living().join(',') : String(this._shown);
    let reply: IReply;
    try {
      reply = await this._ask(content, to);
    } catch (reason) {
      const message = reason instanceof Error ? reason.message : String(reason);
      reply = { type: 'response', request_seq: seq, success: false, command, message, body: EMPTY } as IReply;
    }
    if (command === 'debugInfo') {
      // A rank that refuses sends no body, and JupyterLab reads its lists all the same.
      reply = { ...reply, body: { ...EMPTY, ...reply.body } };
    }
    this._look(command, reply);
    if (STEPS.has(command)) {
      this.states.refresh();
    }
    return reply;
  }

  private get _group(): IGroup | null {
    return this._options.current();
  }

  /** The ranks that can answer. */
  private _living(): number[] {
    const group = this._group;
    return this.ranks.filter(rank => group?.ranks[rank]?.state !== 'dead');
  }

  /** Follow the events from when it is attached until it is not. */
  private _look(command: string, reply: IReply): void {
    if (command === 'initialize' && reply.success === false) {
      this._options.onProblem(reply.message ?? '');
    } else if (command === 'disconnect') {
      this._stop();
    } else if (command === 'attach' ? reply.success : command === 'debugInfo' && reply.body?.isStarted) {
      this._start();
    }
    if (command === 'attach' && reply.success) {
      // As kernels do: JupyterLab opens its panel.
      this._tell({ type: 'event', seq: 0, event: 'initialized', body: {} });
    }
  }

  /** The reply of the first rank, or of the first rank that failed to begin. */
  private async _ask(content: DebugContent, ranks: string): Promise<IReply> {
    const contents = (await this._askRanks(content, ranks)).map(reply => reply.content as IReply);
    const begins = content.command === 'initialize' || content.command === 'attach';
    return (begins && contents.find(reply => reply.success === false)) || contents[0];
  }

  private async _askRanks(content: DebugContent, ranks: string): Promise<IDebugReply[]> {
    const { service, group } = this._options;
    const { _group: current } = this;
    // JupyterLab asks as soon as it knows the session, however often the group changes until it is ready.
    if (!current || isGone(current) || isAway(current) || isStarting(current)) {
      throw new Error(translation().__('%1 is not ready.', group.name));
    }
    const { replies } = await service.debug(group.id, {
      ranks,
      message: content as unknown as Record<string, unknown>
    });
    return replies.map(reply => fromLineOne(this._cellFiles.read(reply)));
  }

  /** Ask for events from now on. */
  private _start(): void {
    if (!this._isStarted) {
      this._isStarted = true;
      this.states.start();
      this._changed.emit();
      void this._follow(this._shown, 0, ++this._turns);
    }
  }

  private _stop(): void {
    if (this._isStarted) {
      this._isStarted = false;
      this.states.stop();
      this._changed.emit();
    }
  }

  /** Report a rank's events to JupyterLab until another rank is shown, or the debugger is attached again. */
  private async _follow(rank: number, since: number, turn: number): Promise<void> {
    const isFollowed = (): boolean => this._isStarted && !this._isDisposed && this._turns === turn;
    while (isFollowed()) {
      try {
        const { body = {} } = await this._ask(requestOf('events', { since, wait: WAIT_SECONDS }), String(rank));
        if (!isFollowed()) {
          return;
        }
        since = body.seq ?? since;
        body.events?.forEach(event => this._tell(event));
        if (body.isStarted === false) {
          this._stop();
        }
      } catch {
        await new Promise(resolve => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  private _tell(event: { event: string; [name: string]: unknown }): void {
    if (event.event === 'stopped') {
      this._isKept = true;
    }
    this.iopubMessage.emit({ header: { msg_type: 'debug_event' }, parent_header: {}, content: event });
    this.states.refresh();
  }

  /** Show a stopped rank if the shown one runs; not before the other ranks have had time to stop, too. */
  private _onStates(): void {
    const [first] = this.states.states.filter(({ stopped }) => stopped);
    const mayLeave = !this._isKept || !this._living().includes(this._shown);
    if (first && mayLeave && this.states.timesSeen > 1 && !this.states.stoppedAt(this._shown)) {
      void this._show(first.rank);
    }
  }

  /** Show a rank as soon as JupyterLab has all answers of the previous rank, unless yet another rank is wanted by then. */
  private async _show(rank: number): Promise<void> {
    this._wanted = rank;
    await this._answered();
    if (this._wanted === rank && rank !== this._shown && this.ranks.includes(rank) && !this._isDisposed) {
      await this._turnTo(rank);
    }
  }

  /** JupyterLab asks for frames, scopes and variables one after the other, and takes each answer for the rank that is shown then. */
  private async _answered(): Promise<void> {
    const latest = Date.now() + ANSWERED_MS;
    do {
      await new Promise(resolve => setTimeout(resolve, LOOK_MS));
    } while (this._unanswered > 0 && Date.now() < latest);
  }

  /** Clear JupyterLab's debugger panel, and fill it from this rank. */
  private async _turnTo(rank: number): Promise<void> {
    const turn = ++this._turns;
    this._shown = rank;
    this._changed.emit();
    const event = (name: string, threadId: number): object => ({
      type: 'event',
      seq: 0,
      event: name,
      body: { threadId, reason: 'pause' }
    });
    const emit = (content: object): void =>
      this.iopubMessage.emit({ header: { msg_type: 'debug_event' }, parent_header: {}, content });
    try {
      const before = await this._ask(requestOf('events', { since: Number.MAX_SAFE_INTEGER }), String(rank));
      const { body } = await this._ask(requestOf('debugInfo', {}), String(rank));
      if (this._turns !== turn || !this._isStarted) {
        return;
      }
      emit(event('continued', 0));
      const [thread] = body?.stoppedThreads ?? [];
      if (thread === undefined) {
        this._askVariables();
      } else {
        emit(event('stopped', thread));
      }
      void this._follow(rank, before.body?.seq ?? 0, turn);
    } catch (reason) {
      this._options.onProblem(reason instanceof Error ? reason.message : String(reason));
      void this._follow(rank, 0, turn);
    }
  }

  private readonly _cellFiles = new CellFiles();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _evaluated = new Signal<this, void>(this);
  private _hasEvaluated = false;
  private _isAlone = false;
  private _isDisposed = false;
  /** The user chose the rank that is shown, or it stopped in this cell. */
  private _isKept = false;
  private _isStarted = false;
  private _options: IDebugConnectionOptions;
  private _shown: number;
  /** Counts what is followed: only the last one. */
  private _turns = 0;
  /** JupyterLab's requests without a reply. */
  private _unanswered = 0;
  /** The rank to show next. */
  private _wanted: number | null = null;
}

function requestOf(command: string, args: object): DebugContent {
  return { type: 'request', seq: 0, command, arguments: args } as unknown as DebugContent;
}

/** Of a request that failed: JupyterLab reads these without looking. */
const EMPTY = {
  ...{ variables: [], breakpoints: [], stackFrames: [], scopes: [], modules: [], stoppedThreads: [] },
  ...{ isStarted: false, hashMethod: 'Murmur2', hashSeed: 0, tmpFilePrefix: '', tmpFileSuffix: '' }
};
