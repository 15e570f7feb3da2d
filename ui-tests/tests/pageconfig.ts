/** Pages that differ in what is installed: the server is the same, the page's configuration is rewritten before it is read. */
import { Page } from '@playwright/test';

interface IEdit {
  disabledExtensions?: string[];
  federated_extensions?: object[];
}

/** Add to the lists in the page's configuration. A page from a route would not be let into this machine's network. */
export async function editPageConfig(page: Page, edit: IEdit): Promise<void> {
  await page.addInitScript(
    additions => {
      const observer = new MutationObserver(() => {
        const node = document.getElementById('jupyter-config-data');
        try {
          const config = JSON.parse(node?.textContent ?? '');
          for (const [key, values] of Object.entries(additions)) {
            config[key] = [...(config[key] ?? []), ...values];
          }
          observer.disconnect();
          node!.textContent = JSON.stringify(config);
        } catch {
          // Not all of it is here.
        }
      });
      observer.observe(document, { childList: true, subtree: true, characterData: true });
    },
    edit as Record<string, unknown[]>
  );
}

/** As if these plugins had been disabled with `jupyter labextension disable`. */
export function disable(page: Page, ...plugins: string[]): Promise<void> {
  return editPageConfig(page, { disabledExtensions: plugins });
}

/** As if this extension were not installed. */
export async function uninstall(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const observer = new MutationObserver(() => {
      const node = document.getElementById('jupyter-config-data');
      try {
        const config = JSON.parse(node?.textContent ?? '');
        observer.disconnect();
        config.federated_extensions = config.federated_extensions.filter(
          ({ name }: { name: string }) => name !== 'jupyter-dist'
        );
        config.disabledExtensions = config.disabledExtensions.filter(
          (id: string) => id !== '@jupyterlab/notebook-extension:cell-executor'
        );
        node!.textContent = JSON.stringify(config);
      } catch {
        // Not all of it is here.
      }
    });
    observer.observe(document, { childList: true, subtree: true, characterData: true });
  });
}

/** Have one plugin of ours throw as it starts; with a member, what it provides throws when that one is read. */
export async function breakPlugin(page: Page, id: string, member: string | null = null): Promise<void> {
  await page.addInitScript(
    broken => {
      interface IPlugin {
        id: string;
        activate(...services: unknown[]): object;
      }
      interface IContainer {
        get(module: string): Promise<() => { default: IPlugin[] }>;
      }
      const fail = (): never => {
        throw new Error('broken by a test');
      };
      const containers: Record<string, IContainer> = {};
      const wrap = ({ get, ...rest }: IContainer): IContainer => ({
        ...rest,
        get: async name => {
          const factory = await get(name);
          return () => {
            const module = factory();
            const plugin = [module.default].flat().find(each => each?.id === broken.id);
            if (plugin) {
              const { activate } = plugin;
              plugin.activate = (...services) =>
                broken.member === null
                  ? fail()
                  : Object.defineProperty(activate(...services), broken.member, { get: fail });
            }
            return module;
          };
        }
      });
      (window as unknown as { _JUPYTERLAB: object })._JUPYTERLAB = new Proxy(containers, {
        set: (target, name: string, container: IContainer) => {
          target[name] = name === 'jupyter-dist' ? wrap(container) : container;
          return true;
        }
      });
    },
    { id, member }
  );
}

/** An extension that provides JupyterLab's cell executor, and is registered after ours. */
export async function addOtherExecutor(page: Page): Promise<void> {
  const extension = { name: 'other-executor', load: 'static/remoteEntry.js', extension: './extension' };
  await editPageConfig(page, { federated_extensions: [extension] });
  await page.route('**/extensions/other-executor/static/remoteEntry.js', route =>
    route.fulfill({ contentType: 'text/javascript', body: `(${otherExecutor.toString()})();` })
  );
}

function otherExecutor(): void {
  type Scope = Record<string, Record<string, { get(): Promise<() => Record<string, unknown>> }>>;
  let shared: Scope;
  const container = {
    init: (scope: Scope) => {
      shared = scope;
    },
    get: async () => {
      const [version] = Object.values(shared['@jupyterlab/notebook']);
      const notebook = (await version.get())();
      const { runCell, INotebookCellExecutor } = notebook;
      const plugin = {
        id: 'other-executor:plugin',
        autoStart: true,
        provides: INotebookCellExecutor,
        activate: () => Object.freeze({ runCell })
      };
      return () => ({ __esModule: true, default: plugin });
    }
  };
  const page = window as unknown as { _JUPYTERLAB?: Record<string, object> };
  page._JUPYTERLAB = page._JUPYTERLAB ?? {};
  page._JUPYTERLAB['other-executor'] = container;
}
