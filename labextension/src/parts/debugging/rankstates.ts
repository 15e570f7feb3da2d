/** Which of the ranks that are debugged are stopped, and where: asked again and again while a debugger is attached. */
import { Poll } from '@lumino/polling';
import { ChangingModel } from '../../model/changing';
import type { IDebugReply } from '../../services/protocol';

const BUSY_MS = 1000;
/** A rank detaches a debugger that gets no requests for some time. */
const IDLE_MS = 8000;

/** One rank's debugger. */
export interface IRankState {
  rank: number;
  /** Null: it runs. */
  stopped: IStop | null;
}

export interface IStop {
  thread: number;
  line: number | null;
  /** The file; null for a cell. */
  file: string | null;
}

export interface IRankStatesOptions {
  ask(command: string, args: object, ranks: readonly number[]): Promise<IDebugReply[]>;
  /** The ranks that can answer. */
  ranks(): number[];
  /** Whether one of them runs a cell. */
  isBusy(): boolean;
}

interface IInfo {
  stoppedThreads?: number[];
  tmpFilePrefix?: string;
}

interface IFrames {
  stackFrames?: Frame[];
}

type Frame = { line?: number; source?: { path?: string } };

export class RankStates extends ChangingModel {
  constructor(private readonly _options: IRankStatesOptions) {
    super();
    this._poll = new Poll({
      auto: false,
      factory: () => this._look(),
      frequency: { interval: BUSY_MS, backoff: false },
      name: 'jupyter-dist:debugged-ranks'
    });
  }

  get states(): readonly IRankState[] {
    return this._states;
  }

  /** How often it looked since ranks stopped that ran before, or the other way round. */
  get timesSeen(): number {
    return this._timesSeen;
  }

  stoppedAt(rank: number): IStop | null {
    return this._states.find(state => state.rank === rank)?.stopped ?? null;
  }

  start(): void {
    void this._poll.start();
  }

  /** Look at once: something has changed. */
  refresh(): void {
    this._askedAt = 0;
    void this._poll.refresh();
  }

  stop(): void {
    void this._poll.stop();
    this._set([]);
  }

  dispose(): void {
    this._poll.dispose();
    super.dispose();
  }

  private async _look(): Promise<void> {
    const { ask, isBusy, ranks } = this._options;
    if (!isBusy() && Date.now() - this._askedAt < IDLE_MS) {
      return;
    }
    this._askedAt = Date.now();
    const infos = await ask('debugInfo', {}, ranks());
    const threads = new Map(infos.map(({ rank, content }) => [rank, body<IInfo>(content)]));
    const stopped = [...threads].filter(([, { stoppedThreads }]) => stoppedThreads?.length).map(([rank]) => rank);
    const stacks = stopped.length > 0 ? await ask('stackTrace', { threadId: 0 }, stopped) : [];
    const stops = new Map(
      stacks.map(({ rank, content }) => [rank, stopOf(threads.get(rank)!, body<IFrames>(content))])
    );
    // It may have been stopped meanwhile.
    if (!this.isDisposed && !this._poll.isDisposed && this._poll.state.phase !== 'stopped') {
      this._set(infos.map(({ rank }) => ({ rank, stopped: stops.get(rank) ?? null })));
    }
  }

  private _set(states: IRankState[]): void {
    const whichOf = (all: readonly IRankState[]): string =>
      all
        .filter(({ stopped }) => stopped)
        .map(({ rank }) => rank)
        .join();
    this._timesSeen = whichOf(states) === whichOf(this._states) ? this._timesSeen + 1 : 1;
    this._states = states;
    this.emitChanged();
  }

  private _askedAt = 0;
  private readonly _poll: Poll;
  private _states: IRankState[] = [];
  private _timesSeen = 0;
}

function body<T>(content: IDebugReply['content']): Partial<T> {
  return (content.body ?? {}) as Partial<T>;
}

function stopOf({ stoppedThreads = [], tmpFilePrefix = '' }: IInfo, { stackFrames = [] }: IFrames): IStop {
  const [frame] = stackFrames as (Frame | undefined)[];
  const path = frame?.source?.path ?? '';
  const isCell = path === '' || (tmpFilePrefix !== '' && path.startsWith(tmpFilePrefix));
  return {
    thread: stoppedThreads[0],
    line: frame?.line ?? null,
    file: isCell ? null : path.slice(path.lastIndexOf('/') + 1)
  };
}
