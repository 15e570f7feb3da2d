/** Finds the widgets of a group for a notebook; loads what they need when the first one is shown. */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { IDistService } from '../../tokens';
import type { WidgetSpace } from './space';

export const WIDGET_MIME = 'application/vnd.jupyter.widget-view+json';

type Library = typeof import('@jupyter-widgets/jupyterlab-manager');
type Context = DocumentRegistry.IContext<INotebookModel>;

/** What shows the widgets of a group. */
export interface ILoadedSpace {
  space: WidgetSpace;
  createRenderer(options: IRenderMime.IRendererOptions): Promise<IRenderMime.IRenderer>;
}

/** One notebook's: the registry with which it shows outputs has these, and a copy for each group. */
export class WidgetSpaces {
  constructor(
    private readonly _service: Pick<IDistService, 'subscribe' | 'sendComm'>,
    private readonly _rendermime: IRenderMimeRegistry,
    private readonly _context: Context | null,
    private readonly _createView: (
      options: IRenderMime.IRendererOptions,
      load: () => Promise<ILoadedSpace | null>
    ) => IRenderMime.IRenderer
  ) {}

  /** The registry with which outputs of this group are shown. */
  registryOf(group: string): IRenderMimeRegistry {
    let registry = this._registries.get(group);
    if (!registry) {
      registry = this._rendermime.clone();
      registry.removeMimeType(WIDGET_MIME);
      const load = (): Promise<ILoadedSpace | null> => this._load(group);
      registry.addFactory(
        { safe: false, mimeTypes: [WIDGET_MIME], createRenderer: options => this._createView(options, load) },
        -10
      );
      this._registries.set(group, registry);
    }
    return registry;
  }

  /** Resolves to null if the page has no widget manager: JupyterLab's extension for widgets is not installed. */
  private async _load(group: string): Promise<ILoadedSpace | null> {
    if (!this._spaces.has(group)) {
      this._spaces.set(group, this._open(group));
    }
    return this._spaces.get(group)!;
  }

  private async _open(group: string): Promise<ILoadedSpace | null> {
    let library: Library;
    try {
      library = await import('@jupyter-widgets/jupyterlab-manager');
    } catch {
      return null;
    }
    const { WidgetSpace } = await import('./space');
    // Nested widgets, as in an Output widget, are shown like others.
    const rendermime = this.registryOf(group);
    const space = new WidgetSpace({ service: this._service, group, rendermime, context: this._context, library });
    return {
      space,
      createRenderer: async options => new library.WidgetRenderer(options, await space.manager)
    };
  }

  private _registries = new Map<string, IRenderMimeRegistry>();
  private _spaces = new Map<string, Promise<ILoadedSpace | null>>();
}
