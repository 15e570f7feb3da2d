/**
 * The variables of a group's ranks, and the comparisons that the user asked for. Ranks are asked only while a panel is
 * visible and no cell runs: after a cell has ended, and by a button.
 */
import type { DistError } from '../../../services/errors';
import type { IComparison, IErrorBody, IGroup, IVariables } from '../../../services/protocol';
import type { IDistGroups, IDistService, IVariableQuestion } from '../../../tokens';
import { ChangingModel } from '../../../model/changing';
import { phaseOf, type Phase } from '../../../model/format/states';

/** Between a cell and the question: with Run All the next cell begins at once, and would wait for the answer. */
const SETTLE_MS = 300;

/** What ranks answered, and when. */
interface IDated {
  /** In milliseconds, by the page's clock. */
  readonly at: number;
  /** What the group had done until then. */
  readonly stamp: string;
}

export interface IListed extends IDated {
  readonly answer: IVariables;
}

/** A comparison; with no result and no error it is not done. */
export interface IComparedVariable extends IDated {
  readonly result: IComparison | null;
  readonly error: IErrorBody | null;
}

export class VariablesModel extends ChangingModel {
  constructor(
    private readonly _service: Pick<IDistService, 'variables' | 'compare'>,
    private readonly _groups: Pick<IDistGroups, 'groups' | 'changed'>,
    readonly group: string
  ) {
    super();
    this._groups.changed.connect(this._update, this);
  }

  get phase(): Phase {
    return phaseOf(this._known);
  }

  /** The last answer, also while it is out of date. */
  get listed(): IListed | null {
    return this._listed;
  }

  /** Why the last question failed. */
  get error(): IErrorBody | null {
    return this._error;
  }

  get isLoading(): boolean {
    return this._isLoading;
  }

  /** By the variable's name. Replaced by another one when it changes. */
  get comparisons(): ReadonlyMap<string, IComparedVariable> {
    return this._comparisons;
  }

  /** Whether no cell has run since then. */
  isCurrent(dated: IDated): boolean {
    return this.phase === 'idle' && dated.stamp === stampOf(this._known);
  }

  get isVisible(): boolean {
    return this._isVisible;
  }

  /** While it is not visible, nothing is asked and nothing changes. */
  setVisible(isVisible: boolean): void {
    this._isVisible = isVisible;
    this._update();
    this.emitChanged();
  }

  /** Ask now. */
  async refresh(): Promise<void> {
    if (this.phase !== 'idle' || this._isLoading) {
      return;
    }
    const stamp = (this._asked = stampOf(this._known));
    this._isLoading = true;
    this.emitChanged();
    try {
      const answer = await this._service.variables(this.group);
      this._listed = { answer, at: Date.now(), stamp };
      this._error = null;
    } catch (reason) {
      this._error = reason as DistError;
    }
    this._isLoading = false;
    this._update();
  }

  /** Compare the tensors of a variable. */
  compare(name: string): Promise<void> {
    return this._ask(name, () => this._service.compare(this.group, { name }));
  }

  /** Ask what a part or another extension asks about a variable. */
  ask(question: IVariableQuestion, name: string): Promise<void> {
    return this._ask(name, () => question.ask(this.group, name));
  }

  closeComparison(name: string): void {
    this._setCompared(name, null);
  }

  dispose(): void {
    clearTimeout(this._timer);
    this._groups.changed.disconnect(this._update, this);
    super.dispose();
  }

  private async _ask(name: string, ask: () => Promise<IComparison>): Promise<void> {
    const known = this._comparisons.get(name);
    if (this.phase !== 'idle' || (known && !known.result && !known.error)) {
      return;
    }
    const asked = { at: Date.now(), stamp: stampOf(this._known), result: null, error: null };
    this._setCompared(name, asked);
    try {
      this._setCompared(name, { ...asked, result: await ask() });
    } catch (reason) {
      this._setCompared(name, { ...asked, error: reason as DistError });
    }
  }

  private _update(): void {
    if (!this._isVisible || this.isDisposed) {
      return;
    }
    clearTimeout(this._timer);
    if (this.phase === 'idle' && !this._isLoading && stampOf(this._known) !== this._asked) {
      this._timer = setTimeout(() => this._isVisible && void this.refresh(), this._asked === null ? 0 : SETTLE_MS);
    }
    this.emitChanged();
  }

  private _setCompared(name: string, compared: IComparedVariable | null): void {
    const changed = new Map(this._comparisons);
    if (compared) {
      changed.set(name, compared);
    } else {
      changed.delete(name);
    }
    this._comparisons = changed;
    this.emitChanged();
  }

  private get _known(): IGroup | null {
    return this._groups.groups.find(({ id }) => id === this.group) ?? null;
  }

  private _isVisible = false;
  private _isLoading = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  /** The stamp of the last question; null: none was asked. */
  private _asked: string | null = null;
  private _listed: IListed | null = null;
  private _error: IErrorBody | null = null;
  private _comparisons: ReadonlyMap<string, IComparedVariable> = new Map();
}

/** Changes with each cell that ends, each restart, and each rank that dies or is replaced. */
function stampOf(group: IGroup | null): string {
  return group ? `${group.generation} ${group.state} ${Math.max(...group.ranks.map(rank => rank.state_at))}` : '';
}
