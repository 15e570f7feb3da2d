/** Which cells on ranks are worth a notification: long cells that have ended, and cells that cannot end. */
import type { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { FINAL_STATES, IExecution } from '../../services/protocol';
import type { IDistExecutions, IFollowedExecution, IClock } from '../../tokens';

/** What happened to a cell. */
export interface ILongCell {
  execution: IExecution;
  /** Why it cannot end; null: it has ended. */
  cannotEnd: string | null;
  /** How long it ran, or has run. */
  seconds: number;
}

export class LongCells implements IDisposable {
  /** `longSeconds`: how long a cell must have run; 0: none is long. `cannotEnd`: the reason; null if it may end. */
  constructor(
    private readonly _executions: Pick<IDistExecutions, 'followed' | 'find'>,
    private readonly _clock: Pick<IClock, 'now'>,
    private readonly _longSeconds: () => number,
    private readonly _cannotEnd: (execution: IExecution) => string | null
  ) {
    _executions.followed.connect(this._onFollowed, this);
  }

  /** Emitted once when a cell is worth it. */
  get noticed(): ISignal<this, ILongCell> {
    return this._noticed;
  }

  /** Emitted when what was noticed of an execution does not hold: it waits no longer, or its cell runs again. */
  get outdated(): ISignal<this, IExecution> {
    return this._outdated;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _onFollowed(_: unknown, id: string): void {
    const followed = this._executions.find(id);
    let isSaid = false;
    let wasOpen = false;
    const free = (execution: IExecution): void => {
      if (isSaid) {
        isSaid = false;
        this._outdated.emit(execution);
      }
    };
    const look = ({ execution }: IFollowedExecution): void => {
      if (!execution || execution.silent) {
        return;
      }
      this._runsAgain(execution);
      if (FINAL_STATES.has(execution.state)) {
        followed?.changed.disconnect(look, this);
        free(execution);
        // What had ended before it was followed is no news.
        if (wasOpen) {
          this._ended(execution);
        }
        return;
      }
      wasOpen = true;
      const reason = this._cannotEnd(execution);
      if (reason === null) {
        free(execution);
      } else if (!isSaid) {
        isSaid = true;
        this._say(execution, reason);
      }
    };
    followed?.changed.connect(look, this);
    if (followed) {
      look(followed);
    }
  }

  private _ended(execution: IExecution): void {
    const { started_at: start, ended_at: end } = execution;
    if (start !== null && end !== null && end - start >= this._longSeconds()) {
      this._said.set(execution.group, execution);
      this._say(execution, null);
    }
  }

  /** A cell that runs again has not failed any more. */
  private _runsAgain({ group, id, cell_id: cell }: IExecution): void {
    const said = this._said.get(group);
    if (said && said.id !== id && cell !== null && said.cell_id === cell) {
      this._said.delete(group);
      this._outdated.emit(said);
    }
  }

  private _say(execution: IExecution, cannotEnd: string | null): void {
    if (this._longSeconds() > 0) {
      const end = execution.ended_at ?? this._clock.now();
      this._noticed.emit({ execution, cannotEnd, seconds: end - (execution.started_at ?? end) });
    }
  }

  private readonly _outdated = new Signal<this, IExecution>(this);
  private _isDisposed = false;
  /** By group: the newest execution whose end was noticed. */
  private readonly _said = new Map<string, IExecution>();
  private readonly _noticed = new Signal<this, ILongCell>(this);
}
