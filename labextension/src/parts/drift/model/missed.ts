/**
 * Which saved executions replaced ranks have missed. As long as no rank was replaced this is known from the groups alone,
 * and the server is asked nothing; then once, and again when cells have run meanwhile.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { FINAL_STATES, IDrift, IGroup, IRank, IRanksBundle } from '../../../services/protocol';
import type { IDistGroups, IDistService } from '../../../tokens';
import { ChangingModel } from '../../../model/changing';

export type SavedRun = Pick<IRanksBundle, 'group' | 'execution_id' | 'state' | 'started_at'>;

/** The server's report on a group. */
interface IReport {
  /** By execution, the ranks to which it is offered; null until the server answers. */
  missed: Map<string, string> | null;
  /** When a rank last began or ended a cell, as it was asked for: later, cells have run since. */
  at: number;
}

export class MissedCells extends ChangingModel {
  constructor(
    private readonly _service: Pick<IDistService, 'drift'>,
    private readonly _groups: IDistGroups
  ) {
    super();
    _groups.changed.connect(this._onGroups, this);
    this._onGroups();
  }

  /** Emitted when ranks of a group were replaced while this page was open, and the group takes cells again. */
  get replaced(): ISignal<this, IGroup> {
    return this._replaced;
  }

  /**
   * The ranks that have missed it because they were replaced, if it is the first such cell of its notebook; empty if none
   * has, or it is not known yet.
   */
  by(run: SavedRun): string {
    const group = this._groups.find(run.group.id);
    if (!group || !mayBeMissed(group, run)) {
      return '';
    }
    const report = this._reports.get(group.id) ?? this._ask(group);
    return report.missed?.get(run.execution_id) ?? '';
  }

  private _ask(group: IGroup): IReport {
    const report: IReport = { missed: this._reports.get(group.id)?.missed ?? null, at: lastStateChange(group) };
    this._reports.set(group.id, report);
    this._service.drift(group.id).then(
      found => {
        report.missed = offersOf(found);
        this.emitChanged();
      },
      reason => console.warn('jupyter_dist: what ranks have missed is not known', reason)
    );
    return report;
  }

  private _onGroups(): void {
    for (const group of this._groups.groups) {
      this._followReplacements(group);
      this._followCells(group);
    }
  }

  private _followReplacements(group: IGroup): void {
    const now = group.ranks.map(({ absences }) => absences?.length ?? 0).join();
    const before = this._absences.get(group.id);
    if (now !== before) {
      this._absences.set(group.id, now);
      this._reports.delete(group.id);
      if (before !== undefined && group.ranks.some(isReplaced)) {
        this._restarting.add(group.id);
      }
      if (before !== undefined || group.ranks.some(isReplaced)) {
        this.emitChanged();
      }
    }
    if (this._restarting.has(group.id) && (group.state === 'ready' || group.state === 'degraded')) {
      this._restarting.delete(group.id);
      this._replaced.emit(group);
    }
  }

  private _followCells(group: IGroup): void {
    const report = this._reports.get(group.id);
    if (report && group.running.length === 0 && lastStateChange(group) !== report.at) {
      this._ask(group);
    }
  }

  /** By group: how often each rank was replaced. */
  private readonly _absences = new Map<string, string>();
  private readonly _replaced = new Signal<this, IGroup>(this);
  private readonly _reports = new Map<string, IReport>();
  private readonly _restarting = new Set<string>();
}

/** When a rank of the group last began or ended a cell. */
export function lastStateChange({ ranks }: IGroup): number {
  return Math.max(...ranks.map(({ state_at: at }) => at));
}

function isReplaced({ absences }: IRank): boolean {
  return Boolean(absences?.length);
}

/** Whether it ended in this generation of ranks, and a rank was replaced since it began. */
function mayBeMissed({ ranks, started_at: since }: IGroup, { state, started_at: at }: SavedRun): boolean {
  return (
    at !== null &&
    FINAL_STATES.has(state) &&
    at >= (since ?? 0) &&
    ranks.some(({ absences }) => absences !== undefined && absences.length > 0 && absences[absences.length - 1][1] > at)
  );
}

/** The first missed cell of each notebook: from it all are run. */
function offersOf({ cells }: IDrift): Map<string, string> {
  const offers = new Map<string, string>();
  const notebooks = new Set<string | null>();
  for (const { execution_id: wanted, notebook, runs, offered } of cells) {
    if (offered && !notebooks.has(notebook)) {
      notebooks.add(notebook);
      [wanted, ...runs.map(({ execution_id: id }) => id)].forEach(id => offers.set(id, offered));
    }
  }
  return offers;
}
