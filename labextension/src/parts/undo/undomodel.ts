/**
 * Which cells of a group can be undone, what keeping that has cost, and which have been undone. The server is asked when
 * a notebook is shown, when cells that keep undo have ended, and after an undo; never for groups that keep none.
 */
import type { IExecution, IGroup, IUndoableCell } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { ChangingModel } from '../../model/changing';
import { expandRanks, includesRank } from '../../model/format/ranks';
import type { IDistUndo, IUndoNote } from './tokens';

/** What is known of a group. */
interface IReport {
  cells: readonly IUndoableCell[];
  undone: readonly IUndoableCell[];
  notes: ReadonlyMap<string, IUndoNote>;
  /** When a rank last began or ended a cell, as it was asked for: later, cells have run since. */
  at: number;
}

export class UndoModel extends ChangingModel implements IDistUndo {
  constructor(
    private readonly _service: Pick<IDistService, 'undoable' | 'executions'>,
    private readonly _groups: IDistGroups
  ) {
    super();
    _groups.changed.connect(this._onGroups, this);
  }

  cells(group: string): readonly IUndoableCell[] {
    return this._reports.get(group)?.cells ?? [];
  }

  undone(group: string): readonly IUndoableCell[] {
    return this._reports.get(group)?.undone ?? [];
  }

  noteOn(group: string, execution: string): IUndoNote | null {
    return this._reports.get(group)?.notes.get(execution) ?? null;
  }

  follow(group: IGroup): void {
    if (!this._reports.has(group.id)) {
      void this._refresh(group);
    }
  }

  /** Ask the server; a failure leaves what was known. */
  private async _refresh(group: IGroup): Promise<void> {
    const known = this._reports.get(group.id) ?? { cells: [], undone: [], notes: new Map() };
    this._reports.set(group.id, { ...known, at: changedAt(group) });
    try {
      const [{ cells, undone = [] }, { executions }] = await Promise.all([
        this._service.undoable(group.id),
        this._service.executions(group.id)
      ]);
      const at = this._reports.get(group.id)?.at ?? changedAt(group);
      this._reports.set(group.id, { cells, undone, notes: notesOf(executions), at });
      this.emitChanged();
    } catch (reason) {
      console.debug('jupyter_dist: which cells can be undone is not known', reason);
    }
  }

  private _onGroups(): void {
    for (const group of this._groups.groups) {
      const report = this._reports.get(group.id);
      if (report && group.running.length === 0 && changedAt(group) !== report.at) {
        void this._refresh(group);
      }
    }
  }

  private readonly _reports = new Map<string, IReport>();
}

/**
 * A cell, and the cells before it in a list that share ranks with it, in the order of the list. Of cells that can be undone
 * these ran later and must be undone with it; of undone cells they ran earlier and must be done again with it.
 */
export function undoneWith(cells: readonly IUndoableCell[], execution: string): IUndoableCell[] {
  const index = cells.findIndex(cell => cell.execution_id === execution);
  const chosen: IUndoableCell[] = [];
  for (const cell of cells.slice(0, index + 1).reverse()) {
    const shares = chosen.some(({ ranks }) => expandRanks(ranks).some(rank => includesRank(cell.ranks, rank)));
    if (chosen.length === 0 || shares) {
      chosen.push(cell);
    }
  }
  return chosen.reverse();
}

function notesOf(executions: readonly IExecution[]): Map<string, IUndoNote> {
  const kept = executions.filter(({ undo, undone_at: at }) => undo !== undefined || at !== undefined);
  return new Map(kept.map(({ id, undo, undone_at: at }) => [id, { cost: undo ?? null, undoneAt: at ?? null }]));
}

function changedAt({ ranks }: IGroup): number {
  return Math.max(0, ...ranks.map(({ state_at: at }) => at));
}
