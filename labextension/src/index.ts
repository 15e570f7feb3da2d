import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { commandsPlugin } from './plugins/commands/commands';
import { completerPlugin } from './plugins/notebook/completer';
import { deletedCellsPlugin } from './plugins/notebook/deletedcells';
import { executorPlugin, guardPlugin, kernelExecutorPlugin } from './plugins/notebook/executor';
import { logPanelPlugin } from './plugins/shell/logpanel';
import { attachPlugin, notebooksPlugin } from './plugins/notebook/notebooks';
import { runningPlugin } from './plugins/shell/running';
import { rankOutputPlugin } from './plugins/notebook/rankoutput';
import { rankPickerPlugin } from './plugins/notebook/rankpicker';
import {
  executionsPlugin,
  groupsPlugin,
  servicePlugin
} from './plugins/services';
import { sessionDialogsPlugin } from './plugins/notebook/sessiondialogs';
import { sidebarPlugin } from './plugins/shell/sidebar';
import { statusPlugin } from './plugins/shell/statusbar';

export * from './tokens';
export type * from './services/protocol';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  servicePlugin,
  groupsPlugin,
  executionsPlugin,
  notebooksPlugin,
  // If two plugins provide a token, JupyterLab uses the later one: the first is for when the second is disabled.
  kernelExecutorPlugin,
  executorPlugin,
  guardPlugin,
  attachPlugin,
  deletedCellsPlugin,
  rankOutputPlugin,
  rankPickerPlugin,
  completerPlugin,
  commandsPlugin,
  sessionDialogsPlugin,
  sidebarPlugin,
  logPanelPlugin,
  runningPlugin,
  statusPlugin
];

export default plugins;
