/**
 * Which executions a notebook's cells belong to when it is opened: nothing
 * that runs, and nothing that ran while nobody looked, may be lost.
 */
import { FINAL_STATES, IExecution, IRanksBundle } from '../services/protocol';

/** A cell as found in the file. */
export interface IFoundCell {
  id: string;
  /** What it has saved of an execution. */
  bundle: IRanksBundle | null;
}

/** A cell that has to be shown an execution. */
export interface IAttachment {
  id: string;
  execution: IExecution;
  saved: IRanksBundle | null;
}

/**
 * Match cells with what the server knows of this notebook.
 *
 * A cell is attached when its file says that it is not at its end; when the
 * server still runs it; and when it was run after the file was last saved, so
 * that the file cannot know.
 */
export function findAttachments(
  cells: readonly IFoundCell[],
  executions: readonly IExecution[],
  savedAt: number
): IAttachment[] {
  const newest = new Map<string, IExecution>();
  for (const execution of executions) {
    const { cell_id } = execution;
    const known = cell_id ? newest.get(cell_id) : undefined;
    if (cell_id && (!known || known.queued_at <= execution.queued_at)) {
      newest.set(cell_id, execution);
    }
  }
  const attachments: IAttachment[] = [];
  for (const { id, bundle } of cells) {
    const execution = newest.get(id);
    const isOpen = bundle !== null && !FINAL_STATES.has(bundle.state);
    const isNews =
      execution !== undefined &&
      execution.state !== 'aborted' &&
      (!FINAL_STATES.has(execution.state) || execution.queued_at > savedAt);
    if (isNews) {
      const saved =
        bundle?.execution_id === execution.id && isOpen ? bundle : null;
      attachments.push({ id, execution, saved });
    } else if (isOpen) {
      attachments.push({ id, execution: asExecution(bundle), saved: bundle });
    }
  }
  return attachments;
}

/** An execution as far as a bundle tells: the server will say the rest. */
function asExecution(bundle: IRanksBundle): IExecution {
  return {
    id: bundle.execution_id,
    group: bundle.group.id,
    ranks: bundle.ranks,
    state: bundle.state,
    cell_id: null,
    notebook: null,
    owner: null,
    execution_count: null,
    queued_at: bundle.started_at ?? 0,
    started_at: bundle.started_at,
    ended_at: null,
    statuses: bundle.statuses,
    error: null
  };
}
