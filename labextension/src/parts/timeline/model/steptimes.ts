/** How long the steps of cells took, for the timeline: asked for once for each ended cell, and again while one runs. */
import { FINAL_STATES, IExecution } from '../../../services/protocol';
import type { IDistStepTimes, IStepTime } from '../../../tokens';
import { ChangingModel } from '../../../model/changing';

/** Cells that run for less are not watched. */
const LEAST_SECONDS = 4;
const MAX_CELLS = 50;
const AGAIN_MS = 5000;

export class StepTimesModel extends ChangingModel {
  constructor(
    /** Null: they are not known. */
    private readonly _source: IDistStepTimes | null,
    private readonly _group: string
  ) {
    super();
  }

  /** The times of steps of each cell that has some, in order. */
  get cells(): readonly (readonly IStepTime[])[] {
    return [...this._known.values()].filter(steps => steps.length > 0).sort(([a], [b]) => a.at - b.at);
  }

  /** The last time of a step that was measured before a moment, in the same cell; null if no cell had steps then. */
  near(at: number): IStepTime | null {
    const cell = this.cells.find(steps => steps[0].at <= at && at <= steps[steps.length - 1].at);
    return cell?.filter(step => step.at <= at).pop() ?? null;
  }

  /** Ask for what is not known of these cells, the newest first, one after the other. */
  async follow(executions: readonly IExecution[], now: () => number): Promise<void> {
    const asking = ++this._asking;
    clearTimeout(this._timer);
    const watched = executions.filter(one => (one.ended_at ?? now()) - (one.started_at ?? Infinity) >= LEAST_SECONDS);
    for (const execution of watched.slice(-MAX_CELLS).reverse()) {
      const isFinal = FINAL_STATES.has(execution.state);
      if (!(isFinal && this._final.has(execution.id))) {
        await this._ask(execution.id, isFinal);
      }
      if (asking !== this._asking || this.isDisposed) {
        return;
      }
    }
    if (executions.some(({ state }) => state === 'running')) {
      this._timer = setTimeout(() => void this.follow(executions, now), AGAIN_MS);
    }
  }

  /** Ask for no more. */
  stop(): void {
    this._asking++;
    clearTimeout(this._timer);
  }

  dispose(): void {
    this.stop();
    super.dispose();
  }

  private async _ask(id: string, isFinal: boolean): Promise<void> {
    try {
      this._known.set(id, (await this._source?.of(this._group, id)) ?? []);
    } catch {
      // It was not watched, or not for long enough yet.
    }
    if (isFinal) {
      this._final.add(id);
    }
    this.emitChanged();
  }

  private _asking = 0;
  private readonly _final = new Set<string>();
  private readonly _known = new Map<string, readonly IStepTime[]>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
