import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { LongCells } from './longcells';
import { loadedAtLast } from '../../services/errors';
import type { IExecution } from '../../services/protocol';
import { guarded } from '../../model/contributions';
import { IDistExecutions, IDistGroups, IDistHeaderNotes } from '../../tokens';
import type { Notices } from './notices';

const ID = 'jupyter-dist:long-cells';
/** Ask the browser whether it may show notifications of long cells. */
const ALLOW = 'jupyter-dist:allow-notifications';
const DEFAULT_SECONDS = 60;

/** Notifies the user when a long cell on ranks has ended, has failed, or cannot end. */
const longCellsPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Notifies when a long cell on ranks has ended, failed or cannot end.',
  autoStart: true,
  requires: [IDistExecutions, IDistGroups, IDistHeaderNotes],
  optional: [INotebookTracker, ISettingRegistry, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    executions: IDistExecutions,
    groups: IDistGroups,
    notes: IDistHeaderNotes,
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
    app.commands.addCommand(ALLOW, {
      label: trans.__('Allow Browser Notifications of Long Cells'),
      caption: trans.__(
        'Ask the browser to show when a long cell on ranks has ended, also while you look at another window'
      ),
      describedBy: { args: { type: 'object', properties: {} } },
      isEnabled: () => permission() === 'default',
      execute: () => window.Notification.requestPermission()
    });
    palette?.addItem({ command: ALLOW, category: trans.__('Ranks') });
    const allow = (): void => void app.commands.execute(ALLOW);
    let notices: Promise<Notices> | null = null;
    const load = async (): Promise<Notices> => {
      const module = await loadedAtLast(() => import(/* webpackChunkName: "longcells" */ './notices'));
      return new module.Notices({ app, tracker, trans, permission, allow });
    };
    const cells = new LongCells(
      executions,
      groups.clock,
      () => longSeconds,
      execution => reasonOf(notes, execution)
    );
    cells.noticed.connect((_, cell) => {
      notices ??= load();
      void notices.then(found => found.say(cell));
    });
    cells.outdated.connect((_, execution) => void notices?.then(found => found.outdated(execution)));
  }
};

/** Why a cell cannot end, from the first part that knows. */
function reasonOf({ items }: IDistHeaderNotes, execution: IExecution): string | null {
  const reasons = items.map(one => guarded(one.id, () => one.cannotEnd?.(execution) ?? null, null));
  return reasons.find(reason => reason !== null) ?? null;
}

/** "denied" where there are none, such as on a page without a secure origin. */
function permission(): NotificationPermission {
  return 'Notification' in window ? window.Notification.permission : 'denied';
}

export default longCellsPlugin;
