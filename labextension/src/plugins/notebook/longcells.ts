import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { formatSeconds } from '../../model/format/quantities';
import { ILongCell, LongCells } from '../../model/executions/longcells';
import { CommandIDs, IDistExecutions } from '../../tokens';
import { stateWord } from '../../widgets/statewords';
import { rankSetLabel } from '../../widgets/rankoutput/itemrow';

const ID = 'jupyter-dist:long-cells';
const DEFAULT_SECONDS = 60;
const AUTO_CLOSE_MS = 10_000;
const MARK = '\u25CF ';

/** Says when a long cell on ranks has ended, failed or cannot end. */
export const longCellsPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Notifies when a long cell on ranks has ended, failed or cannot end.',
  autoStart: true,
  requires: [IDistExecutions],
  optional: [INotebookTracker, ISettingRegistry, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    executions: IDistExecutions,
    tracker: INotebookTracker | null,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    let longSeconds = DEFAULT_SECONDS;
    void settings?.load(ID).then(loaded => {
      const read = (): void => void (longSeconds = Number(loaded.composite.longSeconds ?? DEFAULT_SECONDS));
      loaded.changed.connect(read);
      read();
    });
    app.commands.addCommand(CommandIDs.allowNotifications, {
      label: trans.__('Allow Browser Notifications of Long Cells'),
      caption: trans.__('Ask the browser to show when a long cell on ranks has ended, also while you look at another window'),
      describedBy: { args: { type: 'object', properties: {} } },
      isEnabled: () => permission() === 'default',
      execute: () => window.Notification.requestPermission()
    });
    palette?.addItem({ command: CommandIDs.allowNotifications, category: trans.__('Ranks') });
    const allow = (): void => void app.commands.execute(CommandIDs.allowNotifications);
    const show = (cell: ILongCell): void => void showCell(app, tracker, cell);
    const notices = new Notices(trans, allow, show);
    new LongCells(executions, () => longSeconds).noticed.connect((_, cell) => notices.say(cell));
  }
};

class Notices {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _allow: () => void,
    private readonly _show: (cell: ILongCell) => void
  ) {
    window.addEventListener('focus', unmarkTitle);
  }

  say(cell: ILongCell): void {
    const trans = this._trans;
    const text = this._textOf(cell);
    const isGood = cell.hangs === null && cell.execution.state === 'ok';
    const isAway = !document.hasFocus();
    const actions = [
      ...(cell.execution.notebook ? [{ label: trans.__('Show the cell'), callback: () => this._show(cell) }] : []),
      ...(permission() === 'default' ? [{ label: trans.__('Notify in the browser, too'), callback: this._allow }] : [])
    ];
    // Who is away finds it when they are back.
    const autoClose = isGood && !isAway ? AUTO_CLOSE_MS : false;
    Notification.emit(text, isGood ? 'success' : cell.hangs === null ? 'error' : 'warning', { autoClose, actions });
    if (isAway) {
      markTitle();
      this._sayInBrowser(cell, text);
    }
  }

  private _sayInBrowser(cell: ILongCell, text: string): void {
    if (permission() !== 'granted') {
      return;
    }
    const notice = new window.Notification(text, { tag: `jupyter-dist-${cell.execution.id}` });
    notice.onclick = () => {
      window.focus();
      this._show(cell);
      notice.close();
    };
  }

  private _textOf({ execution, hangs, seconds }: ILongCell): string {
    const trans = this._trans;
    const { notebook, execution_count: count, state, ranks } = execution;
    const cell = notebook ? trans.__('Cell [%1] of %2', count ?? '*', notebook.split('/').pop()!) : trans.__('A cell [%1]', count ?? '*');
    const place = `${cell} (${rankSetLabel(trans, ranks)})`;
    return hangs === null
      ? trans.__('%1: %2 after %3', place, stateWord(trans, state), formatSeconds(seconds))
      : trans.__('%1 cannot end: %2', place, hangs);
  }
}

/** "denied" where there are none, such as on a page without a secure origin. */
function permission(): NotificationPermission {
  return 'Notification' in window ? window.Notification.permission : 'denied';
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

/** Open the notebook at the cell. */
async function showCell(app: JupyterFrontEnd, tracker: INotebookTracker | null, { execution }: ILongCell): Promise<void> {
  await app.commands.execute('docmanager:open', { path: execution.notebook });
  const panel = tracker?.find(({ context }) => context.path === execution.notebook);
  await panel?.context.ready;
  const at = panel?.content.widgets.findIndex(({ model }) => model.id === execution.cell_id) ?? -1;
  if (panel && at >= 0) {
    panel.content.activeCellIndex = at;
    await panel.content.scrollToItem(at, 'smart');
  }
}
