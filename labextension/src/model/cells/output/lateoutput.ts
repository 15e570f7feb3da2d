/** What widgets print, and later cells update, after the end of a cell: written into the notebook as long as the cell shows that execution. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IDisposable } from '@lumino/disposable';
import { FINAL_STATES, IRanksBundle, ISavedItem } from '../../../services/protocol';
import type { IDistExecutions, IDistGroups, IFollower } from '../../../tokens';
import { makeBundle } from '../../outputs/bundle';
import { isLive } from '../../outputs/liveoutputs';
import type { Authors } from './authors';
import { METADATA_KEY } from '../../targets/target';
import { CellOutput, savedBundle } from './celloutput';

const WRITE_MS = 1000;

/** Whether an output may change after its end: widgets print, and displays with an id are updated by later cells. */
export function mayChange({ items }: Pick<IRanksBundle, 'items'>): boolean {
  return items.some(({ output }) => isLive(output) || (output?.data !== undefined && isUpdated(output)));
}

function isUpdated(output: object): boolean {
  const { metadata } = output as { metadata?: Record<string, { updates?: unknown } | null> | null };
  return metadata?.[METADATA_KEY]?.updates === true;
}

/** Follows an execution that has ended as long as it is shown, and may change. */
export class LateFollower implements IDisposable {
  constructor(private readonly _options: { executions: IDistExecutions; groups: IDistGroups }) {}

  isDisposed = false;

  /** Returns whether it follows something else than before. */
  update({ execution_id: id, group }: IRanksBundle, items: readonly ISavedItem[], isTrusted: boolean): boolean {
    const isWanted = isTrusted && mayChange({ items: [...items] }) && this._options.groups.find(group.id) !== null;
    if (this.isDisposed || (isWanted ? this._follower?.followed.id === id : this._follower === null)) {
      return false;
    }
    const before = this._follower;
    this._follower = isWanted ? this._options.executions.follow(group.id, id) : null;
    before?.dispose();
    return true;
  }

  dispose(): void {
    this.isDisposed = true;
    this._follower?.dispose();
    this._follower = null;
  }

  private _follower: IFollower | null = null;
}

export class LateOutput implements IDisposable {
  constructor(
    executions: IDistExecutions,
    private readonly _saved: IRanksBundle,
    private readonly _cell: () => ICodeCellModel | null,
    private readonly _authors: Authors | null
  ) {
    this._follower = executions.follow(_saved.group.id, _saved.execution_id);
    this._follower.followed.changed.connect(this._onChanged, this);
    _authors?.keep(_saved.execution_id);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Write what is not in the notebook yet. */
  flush(): void {
    if (this._timer !== undefined) {
      clearTimeout(this._timer);
      this._timer = undefined;
      this._write();
    }
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      clearTimeout(this._timer);
      this._follower.followed.changed.disconnect(this._onChanged, this);
      this._follower.dispose();
      this._authors?.drop(this._saved.execution_id);
    }
  }

  private _onChanged(): void {
    this._timer ??= setTimeout(() => this.flush(), WRITE_MS);
  }

  private _write(): void {
    const { execution, items } = this._follower.followed;
    const cell = this._cell();
    const shown = cell && !cell.isDisposed ? savedBundle(cell) : null;
    if (!cell || shown?.execution_id !== this._saved.execution_id) {
      this.dispose(); // the cell was run again, or cleared
    } else if (execution && FINAL_STATES.has(execution.state) && (this._authors?.isLateAuthor(execution.id) ?? true)) {
      new CellOutput(cell).write(
        bundleAfter(shown, makeBundle(this._saved.group, execution, items, shown.error ?? null))
      );
    }
  }

  private _follower: IFollower;
  private _isDisposed = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** The new bundle, with what only the saved one has. */
function bundleAfter({ code_checksum: checksum }: IRanksBundle, bundle: IRanksBundle): IRanksBundle {
  return checksum ? { ...bundle, code_checksum: checksum } : bundle;
}
