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
  const newest = newestByCell(executions);
  const attachments: IAttachment[] = [];
  for (const { id, bundle } of cells) {
    const execution = newest.get(id);
    const open = bundle && !FINAL_STATES.has(bundle.state) ? bundle : null;
    if (execution && isNews(execution, savedAt)) {
      const saved = open?.execution_id === execution.id ? open : null;
      attachments.push({ id, execution, saved });
    } else if (open) {
      attachments.push({ id, execution: asExecution(open), saved: open });
    }
  }
  return attachments;
}

/** Whether the file cannot know of an execution, or of its end. */
function isNews(execution: IExecution, savedAt: number): boolean {
  if (FINAL_STATES.has(execution.state)) {
    return execution.state !== 'aborted' && execution.queued_at > savedAt;
  }
  return true;
}

function newestByCell(
  executions: readonly IExecution[]
): Map<string, IExecution> {
  const newest = new Map<string, IExecution>();
  for (const execution of executions) {
    const { cell_id: id } = execution;
    const known = id ? newest.get(id) : undefined;
    if (id && (!known || known.queued_at <= execution.queued_at)) {
      newest.set(id, execution);
    }
  }
  return newest;
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
