import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { commandsPlugin } from './plugins/commands/commands';
import { consolePlugin } from './plugins/console/consoleplugin';
import { completerPlugin } from './plugins/help/completer';
import { deletedCellsPlugin } from './plugins/cells/deletedcells';
import { executorPlugin, guardPlugin, kernelExecutorPlugin } from './plugins/cells/executor';
import { longCellsPlugin } from './plugins/cells/longcellsplugin';
import { logPanelPlugin } from './plugins/panels/logpanelplugin';
import { attachPlugin, notebooksPlugin } from './plugins/cells/notebooksplugin';
import { nodeWarningsPlugin } from './plugins/shell/nodewarnings';
import { runningPlugin } from './plugins/shell/running';
import { cellOffersPlugin, newNotebookPlugin, starterPlugin } from './plugins/notebook/startgroups';
import { contextualHelpPlugin } from './plugins/help/contextualhelp';
import { inspectionPlugin } from './plugins/help/inspection';
import { rankKernelPlugin } from './plugins/cells/rankkernelplugin';
import { headerNotesPlugin, outputTabsPlugin, rankOutputPlugin } from './plugins/notebook/rankoutput';
import { rankPickerPlugin } from './plugins/notebook/rankpicker';
import { executionsPlugin, groupsPlugin, servicePlugin } from './plugins/services';
import { sessionDialogsPlugin } from './plugins/cells/sessiondialogs';
import { sidebarPlugin } from './plugins/shell/sidebarplugin';
import { statePlugin } from './plugins/state/stateplugin';
import { undoPlugin } from './plugins/state/undoplugin';
import { statusPlugin } from './plugins/shell/statusbarplugin';
import { launcherPlugin } from './plugins/commands/launchersection';
import { variableSectionsPlugin, variablesPlugin } from './plugins/panels/variablesplugin';
import { partPlugins } from './parts';

export * from './tokens';
export type * from './services/protocol';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  servicePlugin,
  groupsPlugin,
  executionsPlugin,
  notebooksPlugin,
  starterPlugin,
  // If two plugins provide a token, JupyterLab uses the later one: the first is for when the second is disabled.
  kernelExecutorPlugin,
  executorPlugin,
  guardPlugin,
  attachPlugin,
  deletedCellsPlugin,
  nodeWarningsPlugin,
  longCellsPlugin,
  cellOffersPlugin,
  newNotebookPlugin,
  launcherPlugin,
  headerNotesPlugin,
  outputTabsPlugin,
  rankOutputPlugin,
  rankPickerPlugin,
  rankKernelPlugin,
  completerPlugin,
  inspectionPlugin,
  contextualHelpPlugin,
  commandsPlugin,
  statePlugin,
  undoPlugin,
  sessionDialogsPlugin,
  consolePlugin,
  sidebarPlugin,
  logPanelPlugin,
  variableSectionsPlugin,
  variablesPlugin,
  runningPlugin,
  statusPlugin,
  ...partPlugins
];

export default plugins;
