/** How many cells replaced ranks of a group have missed: asked again whenever cells have run, until there are none. */
import type { IGroup } from '../../../services/protocol';
import type { IDistGroups, IDistService } from '../../../tokens';
import { ChangingModel } from '../../../model/changing';
import { lastStateChange } from './missed';

export class MissedOffer extends ChangingModel {
  constructor(
    private readonly _service: Pick<IDistService, 'drift'>,
    private readonly _groups: Pick<IDistGroups, 'changed' | 'find'>,
    private readonly _id: string
  ) {
    super();
    this._generation = this.group?.generation;
    _groups.changed.connect(this._onGroups, this);
  }

  /** The group; null: it is gone. */
  get group(): IGroup | null {
    return this._groups.find(this._id);
  }

  /** How many cells the page offers to run again. */
  cells = 0;

  /** Ask the server, and report the answer. */
  async look(): Promise<void> {
    const { group } = this;
    this._askedAt = group ? lastStateChange(group) : 0;
    const found = group ? await this._service.drift(this._id) : null;
    if (!this.isDisposed) {
      this.cells = found?.cells.filter(cell => cell.offered).length ?? 0;
      this.emitChanged();
    }
  }

  /** Report that there are none any more. */
  end(): void {
    if (!this.isDisposed) {
      this.cells = 0;
      this.emitChanged();
      this.dispose();
    }
  }

  dispose(): void {
    this._groups.changed.disconnect(this._onGroups, this);
    super.dispose();
  }

  private _onGroups(): void {
    const { group } = this;
    if (!group || group.generation !== this._generation) {
      this.end(); // all ranks are new: they have all missed everything
    } else if (isReady(group) && group.running.length === 0 && lastStateChange(group) !== this._askedAt) {
      this.look().catch(reason => console.warn('jupyter_dist: what ranks have missed is not known', reason));
    }
  }

  private _askedAt = 0;
  private readonly _generation: number | undefined;
}

/** Whether it answers: what its ranks have missed is not known while they start or end. */
function isReady({ state }: IGroup): boolean {
  return state === 'ready' || state === 'degraded';
}
