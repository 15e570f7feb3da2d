/** Reads the curves of one execution as its output comes, a little at a time. */
import type { IDisposable } from '@lumino/disposable';
import type { IErrorBody } from '../../../services/protocol';
import type { IDistExecutions, IFollower } from '../../../tokens';
import { CurveReader } from './reader';

/** Time for reading lines at once. */
const READ_MS = 8;

export class CurveReading implements IDisposable {
  constructor(
    executions: Pick<IDistExecutions, 'follow'>,
    group: string,
    readonly execution: string,
    private readonly _onRead: () => void
  ) {
    this._follower = executions.follow(group, execution);
    this._follower.followed.changed.connect(this._read, this);
    this._read();
  }

  /** New for each reading: output that begins again would look like output that was cleared. */
  readonly reader = new CurveReader();

  /** Why it cannot be read. */
  get error(): IErrorBody | null {
    return this._follower.followed.error;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      clearTimeout(this._timer);
      this._follower.followed.changed.disconnect(this._read, this);
      this._follower.dispose();
    }
  }

  private _read(): void {
    clearTimeout(this._timer);
    if (!this.reader.read(this._follower.followed.items, performance.now() + READ_MS)) {
      this._timer = setTimeout(() => this._read(), 0);
    }
    this._onRead();
  }

  private readonly _follower: IFollower;
  private _isDisposed = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
