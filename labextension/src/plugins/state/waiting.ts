/** Follows a request that is an execution, such as an undo, to its end, with a notification when that takes longer. */
import type { IStream } from '@jupyterlab/nbformat';
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatBytes } from '../../model/format/quantities';
import type { IErrorBody, IExecution } from '../../services/protocol';
import type { IDistExecutions, IFollowedExecution } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupNotice, notifyGroup } from '../../widgets/notices/groupnotices';

/** A shorter one is not worth a notification. */
const QUICK_MS = 1000;

/** How an execution ended. */
export interface IOutcome {
  readonly isOk: boolean;
  /** Why it failed, or was cancelled. */
  readonly error: IErrorBody | null;
  /** What its ranks wrote on stdout and stderr. */
  readonly text: string;
  readonly warnings: string;
  readonly execution: IExecution | null;
}

/** How far an execution is, in bytes; a total of 0: not known yet. */
export interface IDone {
  readonly done_bytes: number;
  readonly total_bytes: number;
}

export class Waiting {
  constructor(
    private readonly _executions: IDistExecutions,
    private readonly _trans: TranslationBundle,
    private readonly _doneOf: (execution: IExecution | null) => IDone | undefined = () => undefined
  ) {}

  /** Wait until it has ended; `doing` names the action. */
  async end({ group, id }: IExecution, doing: string): Promise<IOutcome> {
    const follower = this._executions.follow(group, id);
    const { followed } = follower;
    const shown = this._show(followed, doing);
    try {
      await followed.ended;
      return outcomeOf(followed);
    } finally {
      shown();
      follower.dispose();
    }
  }

  /** Show how far it is, with a button that cancels it, until the returned function is called. */
  private _show(followed: IFollowedExecution, doing: string): () => void {
    const { _trans: trans } = this;
    const failed = (reason: unknown): void => notifyError(reason, { group: followed.group });
    const cancel = (): void => void this._executions.cancel(followed.group, followed.id).catch(failed);
    const actions = [{ label: trans.__('Cancel'), callback: cancel }];
    let notice: GroupNotice | null = null;
    const update = (): void =>
      notice?.update(this._words(doing, followed.execution), this._progress(followed.execution));
    const timer = setTimeout(() => {
      const message = this._words(doing, followed.execution);
      notice = notifyGroup(followed.group, message, 'in-progress', { autoClose: false, actions, holds: true });
    }, QUICK_MS);
    followed.changed.connect(update);
    return () => {
      clearTimeout(timer);
      followed.changed.disconnect(update);
      notice?.end();
    };
  }

  private _words(doing: string, execution: IExecution | null): string {
    const { _trans: trans } = this;
    const { done_bytes: done = 0, total_bytes: total = 0 } = this._doneOf(execution) ?? {};
    if (execution?.state === 'queued') {
      return trans.__('%1: waits for the cells before it', doing);
    }
    return total > 0 ? trans.__('%1: %2 of %3', doing, formatBytes(done), formatBytes(total)) : doing;
  }

  private _progress(execution: IExecution | null): number | undefined {
    const { done_bytes: done = 0, total_bytes: total = 0 } = this._doneOf(execution) ?? {};
    return total > 0 ? Math.min(1, done / total) : undefined;
  }
}

function outcomeOf({ execution, error, items }: IFollowedExecution): IOutcome {
  const isOk = !error && execution?.state === 'ok';
  const written = (name: string): string =>
    items
      .map(({ output }) => output)
      .filter((output): output is IStream => output?.output_type === 'stream' && output.name === name)
      .map(({ text }) => (Array.isArray(text) ? text.join('') : text))
      .join('')
      .trim()
      .replace(/\s*\n\s*/g, ' ');
  return {
    isOk,
    error: error ?? execution?.error ?? null,
    text: written('stdout'),
    warnings: written('stderr'),
    execution: execution ?? null
  };
}
