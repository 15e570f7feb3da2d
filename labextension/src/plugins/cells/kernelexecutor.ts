/**
 * Finds the executor that kernel cells would use on this page without this
 * extension. Two other extensions have their own (package.json disables both
 * plugins, because a page has one executor): jupyter-server-nbmodel runs kernel
 * cells on the server, and so does jupyter-collaboration if its
 * `server_side_execution` is set. Kernel cells still use them: a disabled
 * plugin is not registered, but its module is on the page and has it.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { PageConfig } from '@jupyterlab/coreutils';
import { INotebookCellExecutor } from '@jupyterlab/notebook';

type ExecutorPlugin = JupyterFrontEndPlugin<INotebookCellExecutor>;

/** The first one installed would run cells, because it disables the next one. */
const OTHERS = [
  '@datalayer/jupyter-server-nbmodel:notebook-cell-executor',
  '@jupyter/docprovider-extension:notebook-cell-executor'
];

/** JupyterLab's containers of prebuilt extensions, by name. */
interface IContainers {
  _JUPYTERLAB?: Record<string, { get(module: string): Promise<() => unknown> } | undefined>;
}

/** The executor of another extension; null if JupyterLab itself runs kernel cells. */
export async function findKernelExecutor(app: JupyterFrontEnd): Promise<INotebookCellExecutor | null> {
  for (const id of OTHERS) {
    try {
      const plugin = await findPlugin(id);
      if (plugin) {
        return await activate(app, plugin);
      }
    } catch (reason) {
      console.warn(`jupyter_dist: kernel cells run as if ${id} were not installed: it could not be loaded`, reason);
    }
  }
  return null;
}

async function findPlugin(id: string): Promise<ExecutorPlugin | null> {
  const [extension] = id.split(':');
  const container = (window as unknown as IContainers)._JUPYTERLAB?.[extension];
  if (!container || PageConfig.Extension.disabled.includes(extension)) {
    return null;
  }
  const module = (await container.get('./extension'))() as { default?: unknown };
  const plugins = [module.default ?? module].flat() as ExecutorPlugin[];
  return plugins.find(plugin => plugin.id === id && plugin.provides === INotebookCellExecutor) ?? null;
}

/** Activate a plugin like JupyterLab does. */
async function activate(app: JupyterFrontEnd, plugin: ExecutorPlugin): Promise<INotebookCellExecutor> {
  const services = await Promise.all([
    ...(plugin.requires ?? []).map(token => app.resolveRequiredService(token)),
    ...(plugin.optional ?? []).map(token => app.resolveOptionalService(token))
  ]);
  return plugin.activate(app, ...services);
}
