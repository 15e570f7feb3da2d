/**
 * JupyterLab's debugger panel on ranks: the bug button of a notebook that runs on ranks attaches to the ranks chosen
 * in its picker, and a row in the panel shows which rank is displayed.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { IDebugger, IDebuggerDisplayRegistry, IDebuggerHandler, IDebuggerSidebar } from '@jupyterlab/debugger';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { DebugConnection, IDebugConnectionOptions } from './debugconnection';
import { parseRanks } from '../../model/format/ranks';
import { takesCells } from '../../model/groups/groups';
import { getNotebookTarget } from '../../model/targets/target';
import { loadedAtLast } from '../../services/errors';
import { IDistGroups, IDistNotebooks, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import type { RankRow } from './rankrow';

const debuggingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:debugging',
  description: "Attaches JupyterLab's debugger to the ranks that are chosen in a notebook's picker.",
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistNotebooks, INotebookTracker],
  optional: [IDebuggerHandler, IDebugger, IDebuggerSidebar, IDebuggerDisplayRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    notebooks: IDistNotebooks,
    tracker: INotebookTracker,
    handler: IDebuggerHandler | null,
    debug: IDebugger | null,
    sidebar: IDebuggerSidebar | null,
    names: IDebuggerDisplayRegistry | null,
    translator: ITranslator | null
  ): void => {
    if (!handler) {
      return; // JupyterLab's debugger is disabled
    }
    const show = sidebar ? panelRow(sidebar, debug, translator ?? nullTranslator) : () => undefined;
    const overlay = async ({ node }: NotebookPanel, connection: DebugConnection): Promise<void> => {
      const module = await loadedAtLast(() => import(/* webpackChunkName: "debugging" */ './pausedoverlay'));
      if (connection.isDisposed) {
        return;
      }
      const trans = (translator ?? nullTranslator).load('jupyterlab');
      new module.PausedOverlay({ container: node, connection, commands: app.commands, trans });
    };
    const connections = new Connections((panel, connection) => void overlay(panel, connection));
    const follower = { service, groups, notebooks, tracker, connections };
    follow(follower, handler, show);
    if (names && debug) {
      const cellOf = ({ path = '' }): string => (CELL_FILE.test(path) ? cellName(tracker, debug, path) : '');
      names.register({ canHandle: source => cellOf(source) !== '', getDisplayName: cellOf });
    }
  }
};

interface IFollowOptions {
  service: IDistService;
  groups: IDistGroups;
  notebooks: IDistNotebooks;
  tracker: INotebookTracker;
  connections: Connections;
}

function follow(
  { service, groups, notebooks, tracker, connections }: IFollowOptions,
  handler: IDebuggerHandler,
  show: (connection: DebugConnection | null) => void
): void {
  const update = async (panel: NotebookPanel): Promise<void> => {
    await panel.sessionContext.ready;
    await panel.context.ready;
    if (panel.isDisposed || tracker.currentWidget !== panel) {
      return;
    }
    const isOther = await connections.set(panel, wanted(service, groups, panel));
    const connection = connections.get(panel);
    show(connection);
    if (isOther) {
      await handler.update(panel, connection?.session ?? panel.sessionContext.session);
    }
  };
  const open = (panel: NotebookPanel): void => {
    const changed = (): void => void update(panel);
    panel.disposed.connect(() => connections.delete(panel));
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
    for (const connection of connections.all) {
      connection.cellEnded();
    }
  });
}

/** The file that stands for a cell on a rank. */
const CELL_FILE = /cells[^/]*\/\d+\.py$/;

/** What the panel calls a cell of the notebook, in place of its file; empty if it is none. */
function cellName(tracker: INotebookTracker, debug: IDebugger, path: string): string {
  const cells = tracker.currentWidget?.content.widgets ?? [];
  const model = cells
    .map(cell => cell.model)
    .find(({ sharedModel }) => debug.getCodeId(sharedModel.getSource()) === path);
  if (model?.type !== 'code') {
    return '';
  }
  const { executionCount, executionState } = model as ICodeCellModel;
  return `In [${executionState === 'running' ? '*' : (executionCount ?? ' ')}]`;
}

/** What connects each open notebook to its ranks. */
class Connections {
  constructor(private readonly _opened: (panel: NotebookPanel, connection: DebugConnection) => void) {}

  get all(): Iterable<DebugConnection> {
    return this._all.values();
  }

  get(panel: NotebookPanel): DebugConnection | null {
    return this._all.get(panel) ?? null;
  }

  /** Resolves to whether there was another. */
  async set(panel: NotebookPanel, options: IDebugConnectionOptions | null): Promise<boolean> {
    const isSame = (): boolean => panel.isDisposed || this.get(panel)?.id === options?.id;
    if (isSame()) {
      return false;
    }
    // Loaded for the first notebook on ranks.
    const module =
      options && (await loadedAtLast(() => import(/* webpackChunkName: "debugging" */ './debugconnection')));
    if (isSame()) {
      return false;
    }
    this.delete(panel);
    if (module) {
      const connection = new module.DebugConnection(options);
      this._all.set(panel, connection);
      this._opened(panel, connection);
    }
    return true;
  }

  delete(panel: NotebookPanel): void {
    this._all.get(panel)?.dispose();
    this._all.delete(panel);
  }

  private readonly _all = new Map<NotebookPanel, DebugConnection>();
}

/** JupyterLab drops the variables after each line of its console, and reads a frame's variables when the frame is chosen. */
function showVariables(this: IDebugger, connection: DebugConnection): void {
  const { callstack } = this.model;
  const { frame } = callstack;
  if (this.session?.connection === connection && frame) {
    callstack.frame = frame;
  }
}

/** The row of ranks at the top of the panel, for the notebook that is shown. */
function panelRow(
  sidebar: IDebuggerSidebar,
  debug: IDebugger | null,
  translator: ITranslator
): (connection: DebugConnection | null) => void {
  const entitle = (connection: DebugConnection): void => {
    if (debug?.isStarted && debug.session?.connection === connection) {
      debug.model.title = connection.name;
    }
  };
  let row: RankRow | null = null;
  let wanted: DebugConnection | null = null;
  return connection => {
    if (wanted === connection) {
      return;
    }
    wanted = connection;
    const load = async (): Promise<void> => {
      const module = await loadedAtLast(() => import(/* webpackChunkName: "debugging" */ './rankrow'));
      if (!row) {
        row = new module.RankRow(translator.load('jupyter_dist'), entitle);
        sidebar.header.addWidget(row);
      }
      row.connection = wanted;
      if (wanted && debug) {
        wanted.evaluated.connect(showVariables, debug);
      }
    };
    if (row || connection) {
      void load();
    }
  };
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
  const onProblem = (message: string): void => notifyError(message, { group: group.id });
  const { ranks } = target;
  const { path } = panel.context;
  const id = `jupyter-dist ${group.id} ${group.generation} ${ranks} ${path}`;
  return { id, service, group, current: () => groups.find(group.id) ?? null, ranks, path, onProblem };
}

export default debuggingPlugin;
