import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { commandsPlugin } from './plugins/commands/commands';
import { deletedCellsPlugin } from './plugins/cells/deletedcells';
import { executorPlugin, guardPlugin, kernelExecutorPlugin } from './plugins/cells/executor';
import { attachPlugin, notebooksPlugin } from './plugins/cells/notebooksplugin';
import { runningPlugin } from './plugins/shell/running';
import { cellOffersPlugin, newNotebookPlugin, starterPlugin } from './plugins/notebook/startgroups';
import { rankKernelPlugin } from './plugins/cells/rankkernelplugin';
import { headerNotesPlugin, outputTabsPlugin, rankOutputPlugin } from './plugins/notebook/rankoutput';
import { rankPickerPlugin } from './plugins/notebook/rankpicker';
import { executionsPlugin, groupsPlugin, servicePlugin } from './plugins/services';
import { sessionDialogsPlugin } from './plugins/cells/sessiondialogs';
import { sidebarPlugin } from './plugins/shell/sidebarplugin';
import { statePlugin } from './plugins/state/stateplugin';
import { launcherPlugin } from './plugins/commands/launchersection';
import { partPlugins } from './parts';

export * from './tokens';
export * from './parts/tokens';
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
  cellOffersPlugin,
  newNotebookPlugin,
  launcherPlugin,
  headerNotesPlugin,
  outputTabsPlugin,
  rankOutputPlugin,
  rankPickerPlugin,
  rankKernelPlugin,
  commandsPlugin,
  statePlugin,
  sessionDialogsPlugin,
  sidebarPlugin,
  runningPlugin,
  ...partPlugins
];

export default plugins;
