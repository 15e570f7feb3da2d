/** The cells of a dialog that sends ranks what they have missed, and the run of those that were chosen. */
import type { IDrift, IDriftCell, IExecution, IMissedCell } from '../../services/protocol';
import type { IError } from '@jupyterlab/nbformat';
import type { IDistExecutions } from '../../tokens';

/** A cell for ranks that have missed it. */
export interface IStep {
  readonly cell: IDriftCell;
  readonly ranks: string;
  readonly reason: IMissedCell['reason'];
  readonly code: string;
}

/** How a run of steps ended. */
export interface IOutcome {
  /** How many succeeded. */
  readonly done: number;
  /** The step that failed, and why; null if none did. */
  readonly failed: { step: IStep; why: string } | null;
}

/** What can be sent, in order. */
export function stepsOf({ cells }: IDrift): IStep[] {
  return cells.flatMap(cell =>
    cell.code === null ? [] : cell.missed.map(({ ranks, reason }) => ({ cell, ranks, reason, code: cell.code! }))
  );
}

/** Whether it is checked when the dialog opens: what is offered to replaced ranks, and the cell that the user came from. */
export function isOffered({ cell, reason }: IStep, execution: string | null): boolean {
  const isMeant = execution !== null && [cell, ...cell.runs].some(({ execution_id: id }) => id === execution);
  return (reason === 'replaced' && cell.offered !== '') || isMeant;
}

export interface IRunOptions {
  executions: IDistExecutions;
  group: string;
  /** Called before each step. */
  begin(step: IStep, index: number): void;
  /** A step calls a collective that needs all ranks: which ranks to run it on; null: stop. */
  ask(step: IStep, message: string): Promise<string | null>;
}

/** Run the steps one after the other; stop at the first that fails. Never rejects. */
export async function runSteps(steps: readonly IStep[], options: IRunOptions): Promise<IOutcome> {
  for (const [index, step] of steps.entries()) {
    options.begin(step, index);
    try {
      const execution = await submit(step, options);
      const why = execution === null ? '' : await failureOf(execution, options);
      if (why !== null) {
        return { done: index, failed: { step, why } };
      }
    } catch (reason) {
      return { done: index, failed: { step, why: (reason as Error).message } };
    }
  }
  return { done: steps.length, failed: null };
}

/** Null: the user stopped here. */
async function submit(step: IStep, { executions, group, ask }: IRunOptions): Promise<IExecution | null> {
  const { code, ranks } = step;
  try {
    return await executions.run(group, { code, ranks, ask_first: true });
  } catch (reason) {
    if ((reason as { code?: string }).code !== 'needs_all_ranks') {
      throw reason;
    }
    const chosen = await ask(step, (reason as Error).message);
    return chosen === null ? null : executions.run(group, { code, ranks: chosen });
  }
}

/** Wait until it has ended; why it failed, or null. */
async function failureOf({ id }: IExecution, { executions, group }: IRunOptions): Promise<string | null> {
  const follower = executions.follow(group, id);
  try {
    const { followed } = follower;
    await followed.ended;
    const { execution, error, items } = followed;
    if (!error && execution?.state === 'ok') {
      return null;
    }
    const raised = items.map(({ output }) => output).find(output => output?.output_type === 'error') as IError | undefined;
    const reason = error ?? execution?.error;
    return reason?.message ?? (raised ? `${raised.ename}: ${raised.evalue}` : (execution?.state ?? ''));
  } finally {
    follower.dispose();
  }
}
