/** The cells of the dialog for missed cells, and how the chosen ones are run on the ranks that missed them. */
import type { IDrift, IDriftCell, IExecution, IMissedCell } from '../../../services/protocol';
import type { IError } from '@jupyterlab/nbformat';
import { localized } from '../../../services/errors';
import type { IDistExecutions } from '../../../tokens';
import { expandRanks } from '../../../model/format/ranks';

/** A cell for ranks that have missed it. */
export interface IMissedStep {
  readonly cell: IDriftCell;
  readonly ranks: string;
  readonly reason: IMissedCell['reason'];
  /** How it ended, and on which ranks, if that was not well. */
  readonly ended: { readonly state: IExecution['state']; readonly on: string } | null;
  readonly code: string;
}

/** How a run of steps ended. */
export interface ICatchUpOutcome {
  /** How many succeeded. */
  readonly done: number;
  /** The steps that the user left out, and the steps that use names which those set or change. */
  readonly skipped: readonly IMissedStep[];
  /** The step that failed, and why; null if none did. */
  readonly failed: { step: IMissedStep; why: string } | null;
}

/** What can be sent, in order. */
export function stepsOf({ cells }: IDrift): IMissedStep[] {
  return cells.flatMap(cell => (cell.code === null ? [] : cell.missed.map(part => stepOf(cell, part, cell.code!))));
}

function stepOf(cell: IDriftCell, { ranks, reason, state, ended_on: on }: IMissedCell, code: string): IMissedStep {
  return { cell, ranks, reason, code, ended: state && on ? { state, on } : null };
}

/** Whether it is checked when the dialog opens: what is offered to replaced ranks, and the cell that the user came from. */
export function isOffered({ cell, reason, ranks }: IMissedStep, execution: string | null): boolean {
  const isMeant = execution !== null && [cell, ...cell.runs].some(({ execution_id: id }) => id === execution);
  const offered = new Set(expandRanks(cell.offered));
  return (reason === 'replaced' && expandRanks(ranks).some(rank => offered.has(rank))) || isMeant;
}

/** On which ranks to run a step that needs all; or not at all, and whether to run those after it. */
export type IAnswer = { readonly ranks: string } | 'skip' | 'stop';

export interface IStepsOptions {
  executions: IDistExecutions;
  group: string;
  /** Called before each step. */
  begin(step: IMissedStep, index: number): void;
  /** A step calls a collective that needs all ranks. */
  ask(step: IMissedStep, message: string): Promise<IAnswer>;
}

/** Run the steps one after the other; stop at the first that fails. Never rejects. */
export async function runSteps(steps: readonly IMissedStep[], options: IStepsOptions): Promise<ICatchUpOutcome> {
  const skipped: IMissedStep[] = [];
  let done = 0;
  for (const [index, step] of steps.entries()) {
    if (step.cell.uses.some(id => skipped.some(({ cell }) => cell.execution_id === id))) {
      skipped.push(step);
      continue;
    }
    options.begin(step, index);
    try {
      const execution = await submit(step, options);
      if (execution === 'skip') {
        skipped.push(step);
        continue;
      }
      const why = execution === 'stop' ? '' : await failureOf(execution, options);
      if (why !== null) {
        return { done, skipped, failed: { step, why } };
      }
      done += 1;
    } catch (reason) {
      return { done, skipped, failed: { step, why: (reason as Error).message } };
    }
  }
  return { done, skipped, failed: null };
}

/** Submit a step, on other ranks or not at all if the user chooses so. */
async function submit(
  step: IMissedStep,
  { executions, group, ask }: IStepsOptions
): Promise<IExecution | 'skip' | 'stop'> {
  const { code, ranks } = step;
  try {
    return await executions.run(group, { code, ranks, ask_first: true });
  } catch (reason) {
    if ((reason as { code?: string }).code !== 'needs_all_ranks') {
      throw reason;
    }
    const answer = await ask(step, (reason as Error).message);
    return typeof answer === 'string' ? answer : executions.run(group, { code, ranks: answer.ranks });
  }
}

/** Wait until it has ended; why it failed, or null. */
async function failureOf({ id }: IExecution, { executions, group }: IStepsOptions): Promise<string | null> {
  const follower = executions.follow(group, id);
  try {
    const { followed } = follower;
    await followed.ended;
    const { execution, error, items } = followed;
    if (!error && execution?.state === 'ok') {
      return null;
    }
    const raised = items.map(({ output }) => output).find(output => output?.output_type === 'error') as
      IError | undefined;
    const reason = error ?? execution?.error;
    return (
      (reason && localized(reason).message) ?? (raised ? `${raised.ename}: ${raised.evalue}` : (execution?.state ?? ''))
    );
  } finally {
    follower.dispose();
  }
}
