import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { executorPlugin } from './plugins/executor';
import { attachPlugin, notebooksPlugin } from './plugins/notebooks';
import {
  executionsPlugin,
  groupsPlugin,
  servicePlugin
} from './plugins/services';

export * from './tokens';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  servicePlugin,
  groupsPlugin,
  executionsPlugin,
  notebooksPlugin,
  executorPlugin,
  attachPlugin
];

export default plugins;
