import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { commandsPlugin } from './plugins/commands';
import { completerPlugin } from './plugins/completer';
import { deletedCellsPlugin } from './plugins/deletedcells';
import { executorPlugin, guardPlugin, kernelExecutorPlugin } from './plugins/executor';
import { logPanelPlugin } from './plugins/logpanel';
import { attachPlugin, notebooksPlugin } from './plugins/notebooks';
import { runningPlugin } from './plugins/running';
import { rankOutputPlugin } from './plugins/rankoutput';
import { rankPickerPlugin } from './plugins/rankpicker';
import {
  executionsPlugin,
  groupsPlugin,
  servicePlugin
} from './plugins/services';
import { sessionDialogsPlugin } from './plugins/sessiondialogs';
import { sidebarPlugin } from './plugins/sidebar';
import { statusPlugin } from './plugins/statusbar';

export * from './tokens';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  servicePlugin,
  groupsPlugin,
  executionsPlugin,
  notebooksPlugin,
  // Of two plugins that provide one token JupyterLab takes the later: the first is for when the second is disabled.
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
