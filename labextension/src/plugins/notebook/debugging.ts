/**
 * JupyterLab's debugger panel on ranks: the bug button of a notebook that runs on ranks attaches to those that are chosen
 * in its picker.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { IDebuggerHandler } from '@jupyterlab/debugger';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { DebugConnection, IDebugConnectionOptions } from '../../model/debugging/debugconnection';
import { parseRanks } from '../../model/format/ranks';
import { takesCells } from '../../model/groups/groups';
import { getNotebookTarget } from '../../model/notebooks/target';
import { loaded } from '../../services/errors';
import { IDistGroups, IDistNotebooks, IDistService } from '../../tokens';

export const debuggingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:debugging',
  description: "Attaches JupyterLab's debugger to the ranks that are chosen in a notebook's picker.",
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistNotebooks, INotebookTracker],
  optional: [IDebuggerHandler],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    notebooks: IDistNotebooks,
    tracker: INotebookTracker,
    handler: IDebuggerHandler | null
  ): void => {
    if (!handler) {
      return; // JupyterLab's debugger is disabled
    }
    follow(service, groups, notebooks, tracker, handler);
  }
};

function follow(
  service: IDistService,
  groups: IDistGroups,
  notebooks: IDistNotebooks,
  tracker: INotebookTracker,
  handler: IDebuggerHandler
): void {
  const connections = new Map<NotebookPanel, DebugConnection>();
  const update = async (panel: NotebookPanel): Promise<void> => {
    await panel.sessionContext.ready;
    await panel.context.ready;
    if (panel.isDisposed || tracker.currentWidget !== panel) {
      return;
    }
    const options = wanted(service, groups, panel);
    // Loaded for the first notebook on ranks.
    const module = options && (await loaded(import(/* webpackChunkName: "debugging" */ '../../model/debugging/debugconnection')));
    const before = connections.get(panel);
    if (panel.isDisposed || before?.id === options?.id) {
      return;
    }
    before?.dispose();
    connections.delete(panel);
    if (module) {
      connections.set(panel, new module.DebugConnection(options));
    }
    await handler.update(panel, connections.get(panel)?.session ?? panel.sessionContext.session);
  };
  const open = (panel: NotebookPanel): void => {
    const changed = (): void => void update(panel);
    panel.disposed.connect(() => {
      connections.get(panel)?.dispose();
      connections.delete(panel);
    });
    void panel.context.ready.then(() => {
      panel.content.model?.sharedModel.changed.connect((_, change) => {
        if ((change as { metadataChange?: unknown }).metadataChange) {
          changed();
        }
      });
      changed();
    });
  };
  tracker.forEach(open);
  tracker.widgetAdded.connect((_, panel) => open(panel));
  tracker.currentChanged.connect((_, panel) => panel && void update(panel));
  groups.changed.connect(() => tracker.currentWidget && void update(tracker.currentWidget));
  notebooks.changed.connect(() => {
    for (const connection of connections.values()) {
      connection.cellEnded();
    }
  });
}

/** What connects to the ranks of the picker; null if there is none that could be debugged. */
function wanted(service: IDistService, groups: IDistGroups, panel: NotebookPanel): IDebugConnectionOptions | null {
  const target = panel.content.model && getNotebookTarget(panel.content.model);
  const group = target && groups.find(target.group);
  try {
    if (!group || !takesCells(group) || parseRanks(target.ranks, group).length === 0) {
      return null;
    }
  } catch {
    return null; // the picker shows what is wrong with the expression
  }
  const onProblem = (message: string): void => void Notification.error(message, { autoClose: 10000 });
  const { ranks } = target;
  const { path } = panel.context;
  const id = `jupyter-dist ${group.id} ${group.generation} ${ranks} ${path}`;
  return { id, service, group, ranks, path, onProblem };
}
