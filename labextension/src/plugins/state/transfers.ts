/** Follows a save, a restore or an undo to its end, with a notification when that takes longer than a moment. */
import { Notification } from '@jupyterlab/apputils';
import type { IStream } from '@jupyterlab/nbformat';
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatBytes } from '../../model/format/quantities';
import type { IErrorBody, IExecution } from '../../services/protocol';
import type { IDistExecutions, IFollowedExecution } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';

/** A shorter one is not worth a notification; JupyterLab loses changes of a notification that was just opened. */
const QUICK_MS = 1000;

/** How an execution ended. */
export interface IOutcome {
  readonly isOk: boolean;
  /** Why it failed, or was cancelled. */
  readonly error: IErrorBody | null;
  /** What its ranks wrote on stdout and stderr. */
  readonly text: string;
  readonly warnings: string;
}

export class Transfers {
  constructor(
    private readonly _executions: IDistExecutions,
    private readonly _trans: TranslationBundle
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
    const cancel = (): void => void this._executions.cancel(followed.group, followed.id).catch(notifyError);
    const actions = [{ label: trans.__('Cancel'), callback: cancel }];
    let id: string | null = null;
    const update = (): void => {
      if (id !== null) {
        Notification.update({ id, message: this._words(doing, followed.execution), ...progressOf(followed.execution) });
      }
    };
    const timer = setTimeout(() => {
      const message = this._words(doing, followed.execution);
      id = Notification.emit(message, 'in-progress', { autoClose: false, actions });
    }, QUICK_MS);
    followed.changed.connect(update);
    return () => {
      clearTimeout(timer);
      followed.changed.disconnect(update);
      if (id !== null) {
        Notification.dismiss(id);
      }
    };
  }

  private _words(doing: string, execution: IExecution | null): string {
    const { _trans: trans } = this;
    const { done_bytes: done = 0, total_bytes: total = 0 } = execution?.transfer ?? {};
    if (execution?.state === 'queued') {
      return trans.__('%1: waits for the cells before it', doing);
    }
    return total > 0 ? trans.__('%1: %2 of %3', doing, formatBytes(done), formatBytes(total)) : doing;
  }
}

function progressOf(execution: IExecution | null): { progress?: number } {
  const { done_bytes: done = 0, total_bytes: total = 0 } = execution?.transfer ?? {};
  return total > 0 ? { progress: Math.min(1, done / total) } : {};
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
  return { isOk, error: error ?? execution?.error ?? null, text: written('stdout'), warnings: written('stderr') };
}
