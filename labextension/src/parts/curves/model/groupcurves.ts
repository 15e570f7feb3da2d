/** The curves of a group: of the cell that was chosen, or of the last cell that has some. Cells are followed only while a panel is visible. */
import type { DistError } from '../../../services/errors';
import { FINAL_STATES, IErrorBody, IExecution, IGroup } from '../../../services/protocol';
import type { IDistExecutions, IDistGroups, IDistService } from '../../../tokens';
import { ChangingModel } from '../../../model/changing';
import { CurveReader } from './reader';
import { CurveReading } from './reading';

/** So many cells can be chosen. */
const MAX_LISTED = 50;
/** So many ended cells are asked for curves, the newest first, to find the last that has some. */
const MAX_ASKED = 8;

export class GroupCurvesModel extends ChangingModel {
  constructor(
    private readonly _service: Pick<IDistService, 'executions' | 'curves'>,
    private readonly _executions: Pick<IDistExecutions, 'follow'>,
    private readonly _groups: Pick<IDistGroups, 'groups' | 'changed'>,
    readonly group: string
  ) {
    super();
    this._groups.changed.connect(this._update, this);
  }

  /** The cells that can be chosen, the newest first. */
  get cells(): readonly IExecution[] {
    return this._cells;
  }

  /** The id of the execution that was chosen; null: the last one with curves. */
  get chosen(): string | null {
    return this._chosen;
  }

  /** What is shown; null if no cell has curves. */
  get shown(): CurveReader | null {
    return this._shown;
  }

  get error(): IErrorBody | null {
    return this._error ?? this._readings[0]?.error ?? null;
  }

  get isGone(): boolean {
    return this._known === null;
  }

  choose(execution: string | null): void {
    this._chosen = execution;
    this._stop();
    this._shown = null;
    this._stamp = null;
    this._update();
  }

  setVisible(isVisible: boolean): void {
    this._isVisible = isVisible;
    if (!isVisible) {
      this._stop();
      this._stamp = null;
    }
    this._update();
  }

  dispose(): void {
    this._stop();
    this._groups.changed.disconnect(this._update, this);
    super.dispose();
  }

  /** Look at the cells again when one has begun or ended. */
  private _update(): void {
    if (!this._isVisible || this.isDisposed) {
      return;
    }
    const stamp = stampOf(this._known);
    if (stamp !== this._stamp) {
      this._stamp = stamp;
      void this._look(stamp);
    }
    this.emitChanged();
  }

  private async _look(stamp: string): Promise<void> {
    const isOld = (): boolean => stamp !== this._stamp || this.isDisposed;
    try {
      const { executions } = await this._service.executions(this.group);
      if (isOld()) {
        return;
      }
      this._cells = executions.filter(one => !one.silent && one.started_at !== null).slice(-MAX_LISTED);
      this._cells.reverse();
      const last = this._chosen ?? (await this._lastWithCurves());
      if (isOld()) {
        return;
      }
      const running = this._chosen === null ? this._cells.filter(({ state }) => !FINAL_STATES.has(state)) : [];
      this._follow([...(last ? [last] : []), ...running.map(({ id }) => id).filter(id => id !== last)]);
      this._error = null;
    } catch (reason) {
      this._error = reason as DistError;
    }
    this.emitChanged();
  }

  /** Of the ended cells; null if none of the last ones has curves. */
  private async _lastWithCurves(): Promise<string | null> {
    const ended = this._cells.filter(({ state }) => FINAL_STATES.has(state));
    for (const { id } of ended.slice(0, MAX_ASKED)) {
      const known = this._having.get(id);
      const has = known ?? (await this._service.curves(this.group, id)).curves.length > 0;
      this._having.set(id, has);
      if (has) {
        return id;
      }
    }
    return null;
  }

  /** Read the curves of these executions; the last of them that has some is shown. */
  private _follow(ids: readonly string[]): void {
    const before = new Map(this._readings.map(reading => [reading.execution, reading]));
    this._readings = ids.map(id => {
      const known = before.get(id);
      before.delete(id);
      return known ?? new CurveReading(this._executions, this.group, id, () => this._onRead());
    });
    before.forEach(reading => reading.dispose());
    this._onRead();
  }

  private _onRead(): void {
    const having = this._readings.filter(({ reader }) => reader.curves.length > 0);
    this._shown = having[having.length - 1]?.reader ?? this._shown;
    this.emitChanged();
  }

  /** What is shown stays. */
  private _stop(): void {
    this._readings.forEach(reading => reading.dispose());
    this._readings = [];
  }

  private get _known(): IGroup | null {
    return this._groups.groups.find(({ id }) => id === this.group) ?? null;
  }

  private _cells: IExecution[] = [];
  private _chosen: string | null = null;
  private _error: IErrorBody | null = null;
  /** Whether ended executions have curves. */
  private readonly _having = new Map<string, boolean>();
  private _isVisible = false;
  private _readings: CurveReading[] = [];
  private _shown: CurveReader | null = null;
  private _stamp: string | null = null;
}

/** Changes with each cell that begins or ends. */
function stampOf(group: IGroup | null): string {
  return group
    ? `${group.generation} ${group.running.join()} ${Math.max(...group.ranks.map(rank => rank.state_at))}`
    : '';
}
