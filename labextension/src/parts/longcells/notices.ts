/** What long cells show, loaded when the first one has ended: a notification, the tab's title, the browser's notice. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { Notification } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ILongCell } from './longcells';
import type { IExecution } from '../../services/protocol';
import { formatSeconds } from '../../model/format/quantities';
import { GroupNotice, notifyGroup } from '../../widgets/notices/groupnotices';
import { rankSetLabel } from '../../widgets/rankoutput/items/itemrow';
import { stateWord } from '../../widgets/states/statewords';
import { showCell } from '../../plugins/notebook/showcell';

const AUTO_CLOSE_MS = 10_000;
const MARK = '\u25CF ';

export interface INoticesOptions {
  app: JupyterFrontEnd;
  tracker: INotebookTracker | null;
  trans: TranslationBundle;
  /** Whether the browser shows notifications. */
  permission(): NotificationPermission;
  /** Ask for the permission to notify in the browser. */
  allow(): void;
}

/** The notice about the latest cell of a group. */
interface ILatestNotice {
  notice: GroupNotice;
  execution: string;
}

export class Notices {
  constructor(private readonly _options: INoticesOptions) {
    window.addEventListener('focus', unmarkTitle);
  }

  say(cell: ILongCell): void {
    const text = this._textOf(cell);
    const actions = this._actionsOn(cell);
    const isGood = cell.cannotEnd === null && cell.execution.state === 'ok';
    const isAway = !document.hasFocus();
    // Who is away finds it when they are back.
    const autoClose = isGood && !isAway ? AUTO_CLOSE_MS : false;
    const kind = isGood ? 'success' : cell.cannotEnd === null ? 'error' : 'warning';
    const { group, id } = cell.execution;
    this._shown.get(group)?.notice.end();
    const holds = cell.cannotEnd === null ? {} : ({ holds: true } as const);
    const notice = notifyGroup(group, text, kind, { autoClose, actions, ...holds });
    this._shown.set(group, { execution: id, notice });
    if (isAway && isGood) {
      window.addEventListener('focus', () => setTimeout(() => notice.end(), AUTO_CLOSE_MS), { once: true });
    }
    if (isAway) {
      markTitle();
      this._sayInBrowser(cell, text);
    }
  }

  /** Take back what was shown of a cell: it waits no longer, or runs again. */
  outdated({ group, id }: IExecution): void {
    const shown = this._shown.get(group);
    if (shown?.execution === id) {
      shown.notice.end();
      this._shown.delete(group);
    }
  }

  private _sayInBrowser(cell: ILongCell, text: string): void {
    if (this._options.permission() !== 'granted') {
      return;
    }
    const notice = new window.Notification(text, { tag: `jupyter-dist-${cell.execution.id}` });
    notice.onclick = () => {
      window.focus();
      void showCell(this._options.app, this._options.tracker, cell.execution);
      notice.close();
    };
  }

  private _actionsOn({ execution }: ILongCell): Notification.IAction[] {
    const { app, tracker, trans, permission, allow } = this._options;
    const show = { label: trans.__('Show the cell'), callback: () => void showCell(app, tracker, execution) };
    const inBrowser = { label: trans.__('Notify in the browser, too'), callback: () => allow() };
    return [...(execution.notebook ? [show] : []), ...(permission() === 'default' ? [inBrowser] : [])];
  }

  private _textOf({ execution, cannotEnd, seconds }: ILongCell): string {
    const { trans } = this._options;
    const { notebook, execution_count: count, state, ranks } = execution;
    const cell = notebook
      ? trans.__('Cell [%1] of %2', count ?? '*', notebook.split('/').pop()!)
      : trans.__('A cell [%1]', count ?? '*');
    const place = `${cell} (${rankSetLabel(trans, ranks)})`;
    return cannotEnd === null
      ? trans.__('%1: %2 after %3', place, stateWord(trans, state), formatSeconds(seconds))
      : trans.__('%1: %2', place, cannotEnd);
  }

  /** By group. */
  private readonly _shown = new Map<string, ILatestNotice>();
}

/** For who looks at another tab of the browser. */
function markTitle(): void {
  if (!document.title.startsWith(MARK)) {
    document.title = MARK + document.title;
  }
}

function unmarkTitle(): void {
  if (document.title.startsWith(MARK)) {
    document.title = document.title.slice(MARK.length);
  }
}
