import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import {
  executionsPlugin,
  groupsPlugin,
  servicePlugin
} from './plugins/services';

export * from './tokens';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  servicePlugin,
  groupsPlugin,
  executionsPlugin
];

export default plugins;
