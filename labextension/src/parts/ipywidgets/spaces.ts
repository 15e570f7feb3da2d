/** Finds the widgets of a group for a notebook; loads the code for widgets when the first one is shown. */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { ISignal, Signal } from '@lumino/signaling';
import type { ILiveOutputs } from '../../model/outputs/liveoutputs';
import { loadedAtLast } from '../../services/errors';
import type { IDistService } from '../../tokens';
import { SharedViews, WIDGET_MIME } from './sharedviews';
import type { WidgetSpace } from './comms/space';

type Library = typeof import('@jupyter-widgets/jupyterlab-manager');
type Context = DocumentRegistry.IContext<INotebookModel>;

/** What shows the widgets of a group. */
export interface ILoadedSpace {
  space: WidgetSpace;
  createRenderer(options: IRenderMime.IRendererOptions): Promise<IRenderMime.IRenderer>;
}

/** One notebook's: the registry with which it shows outputs has these, and a copy for each group. */
export class WidgetSpaces implements ILiveOutputs {
  constructor(
    private readonly _service: Pick<IDistService, 'subscribe' | 'sendToWidget'>,
    private readonly _rendermime: IRenderMimeRegistry,
    private readonly _context: Context | null,
    /** Whether the page has JupyterLab's extension for widgets: its modules can be imported even if it is disabled. */
    private readonly _isInstalled: () => boolean,
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

  open(redraw: () => void): SharedViews {
    return new SharedViews(this, redraw);
  }

  /** Emitted with a group when `findShared` may return something else. */
  get sharedChanged(): ISignal<this, string> {
    return this._sharedChanged;
  }

  /** The widget that stands for these of a group's ranks, which are given by rank; null if they are not equal. */
  findShared(group: string, roots: ReadonlyMap<number, string>): string | null {
    return this._loaded.get(group)?.findShared(roots) ?? null;
  }

  /** Resolves to null if the page has no widget manager: JupyterLab's extension for widgets is not installed, or disabled. */
  private async _load(group: string): Promise<ILoadedSpace | null> {
    if (!this._spaces.has(group)) {
      this._spaces.set(group, this._open(group));
    }
    return this._spaces.get(group)!;
  }

  private async _open(group: string): Promise<ILoadedSpace | null> {
    let library: Library;
    if (!this._isInstalled()) {
      return null;
    }
    try {
      library = await import('@jupyter-widgets/jupyterlab-manager');
    } catch {
      this._spaces.delete(group); // the next widget tries again
      return null;
    }
    const { WidgetSpace } = await loadedAtLast(() => import('./comms/space'));
    // Nested widgets, as in an Output widget, are shown like others.
    const rendermime = this.registryOf(group);
    const space = new WidgetSpace({ service: this._service, group, rendermime, context: this._context, library });
    this._loaded.set(group, space);
    space.sharedChanged.connect(() => this._sharedChanged.emit(group));
    void space.ready.then(() => this._sharedChanged.emit(group));
    return {
      space,
      createRenderer: async options => new library.WidgetRenderer(options, await space.manager)
    };
  }

  private _loaded = new Map<string, WidgetSpace>();
  private _registries = new Map<string, IRenderMimeRegistry>();
  private _sharedChanged = new Signal<this, string>(this);
  private _spaces = new Map<string, Promise<ILoadedSpace | null>>();
}
