/**
 * Finds the executions of a notebook's cells when it is opened, so that no
 * output is lost of cells that are running, or that ran while it was closed.
 */
import { FINAL_STATES, IErrorBody, IExecution, IRanksBundle } from '../../../services/protocol';
import { translation } from '../../../services/translation';

/** A cell as found in the file. */
export interface IFoundCell {
  id: string;
  /** Its saved execution. */
  bundle: IRanksBundle | null;
}

/** The executions on the server. */
export interface IKnownExecutions {
  /** All listed executions, of all groups. */
  executions: readonly IExecution[];
  /** The groups that could not be reached, so their executions are unknown. */
  silent: ReadonlySet<string>;
}

/** A cell to attach to an execution. */
export interface IAttachment {
  id: string;
  /** As listed by the server; null if the server does not have it any more. */
  execution: IExecution | null;
  saved: IRanksBundle | null;
}

/**
 * Match cells with the server's executions of this notebook.
 *
 * A cell is attached if its saved execution had not ended, if the server
 * still runs it, or if it was run after the file was last saved. Ids from a
 * file are only compared with the ids that the server lists, because a file
 * is untrusted.
 */
export function findAttachments(
  cells: readonly IFoundCell[],
  { executions, silent }: IKnownExecutions,
  path: string,
  savedAt: number
): IAttachment[] {
  const newest = newestByCell(executions.filter(({ notebook }) => notebook === path));
  const listed = new Map(executions.map(execution => [execution.id, execution]));
  const attachments: IAttachment[] = [];
  for (const { id, bundle } of cells) {
    const own = newest.get(id);
    const open = bundle && !FINAL_STATES.has(bundle.state) ? bundle : null;
    if (own && isNews(own, savedAt, bundle)) {
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

/** The bundle of an execution whose end will never be known. */
export function lostBundle(bundle: IRanksBundle): IRanksBundle {
  const statuses = bundle.statuses.map(status =>
    FINAL_STATES.has(status.status) ? status : { ...status, status: 'lost' as const }
  );
  const error = lostError({ code: 'unknown_execution', message: '', hint: '' });
  return { ...bundle, state: 'lost', statuses, error };
}

/** Why an execution cannot be followed, as an error for its cell. */
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

/** Whether an execution began or ended after the file was saved, and its cell does not have its whole output. */
function isNews(execution: IExecution, savedAt: number, bundle: IRanksBundle | null): boolean {
  if (bundle?.execution_id === execution.id && FINAL_STATES.has(bundle.state)) {
    return false;
  }
  if (FINAL_STATES.has(execution.state)) {
    return execution.state !== 'aborted' && execution.queued_at > savedAt;
  }
  return true;
}

function newestByCell(executions: readonly IExecution[]): Map<string, IExecution> {
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
