/**
 * Which executions a notebook's cells belong to when it is opened: nothing
 * that runs, and nothing that ran while nobody looked, may be lost.
 */
import { FINAL_STATES, IErrorBody, IExecution, IRanksBundle } from '../../services/protocol';
import { translation } from '../../services/translation';

/** A cell as found in the file. */
export interface IFoundCell {
  id: string;
  /** What it has saved of an execution. */
  bundle: IRanksBundle | null;
}

/** What the server says of its executions. */
export interface IKnown {
  /** All that it lists, of all groups. */
  executions: readonly IExecution[];
  /** The groups that could not be asked now: of them nothing can be said. */
  silent: ReadonlySet<string>;
}

/** A cell that has to be shown an execution. */
export interface IAttachment {
  id: string;
  /** As the server lists it; null: the server does not know it, and never will. */
  execution: IExecution | null;
  saved: IRanksBundle | null;
}

/**
 * Match cells with what the server knows of this notebook.
 *
 * A cell is attached when its file says that it is not at its end; when the
 * server still runs it; and when it was run after the file was last saved, so
 * that the file cannot know. What a file says is only ever compared with what
 * the server lists: a file may name anything.
 */
export function findAttachments(
  cells: readonly IFoundCell[],
  { executions, silent }: IKnown,
  path: string,
  savedAt: number
): IAttachment[] {
  const newest = newestByCell(executions.filter(({ notebook }) => notebook === path));
  const listed = new Map(executions.map(execution => [execution.id, execution]));
  const attachments: IAttachment[] = [];
  for (const { id, bundle } of cells) {
    const own = newest.get(id);
    const open = bundle && !FINAL_STATES.has(bundle.state) ? bundle : null;
    if (own && isNews(own, savedAt)) {
      const saved = open?.execution_id === own.id ? open : null;
      attachments.push({ id, execution: own, saved });
    } else if (open && !silent.has(open.group.id)) {
      const execution = listed.get(open.execution_id);
      const isSame = execution?.group === open.group.id;
      attachments.push({ id, execution: isSame ? execution : null, saved: open });
    }
  }
  return attachments;
}

/** A bundle of which nobody will ever tell the end. */
export function lostBundle(bundle: IRanksBundle): IRanksBundle {
  const statuses = bundle.statuses.map(status =>
    FINAL_STATES.has(status.status) ? status : { ...status, status: 'lost' as const }
  );
  const error = lostError({ code: 'unknown_execution', message: '', hint: '' });
  return { ...bundle, state: 'lost', statuses, error };
}

/** Why an execution cannot be followed, for who looks at its cell. */
export function lostError(error: IErrorBody): IErrorBody {
  if (error.code !== 'unknown_execution' && error.code !== 'unknown_group') {
    return error;
  }
  const trans = translation();
  return {
    code: 'lost',
    message: trans.__('The server no longer has this execution; how it ended is unknown.'),
    hint: trans.__('Its group was shut down, or the server keeps only newer executions. Run the cell again.')
  };
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
