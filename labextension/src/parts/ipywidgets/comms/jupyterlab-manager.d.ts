/**
 * JupyterLab's widget manager, as far as it is used here. It is part of another extension (jupyterlab_widgets), which may
 * not be installed: import it when it is needed.
 */
declare module '@jupyter-widgets/jupyterlab-manager' {
  import type { DocumentRegistry } from '@jupyterlab/docregistry';
  import type { INotebookModel } from '@jupyterlab/notebook';
  import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
  import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
  import type { IDisposable } from '@lumino/disposable';

  export interface IWidgetModel {
    comm_live: boolean;
    get(name: string): unknown;
    set(name: string, value: unknown): void;
    save_changes(): void;
  }

  export interface IManager extends IDisposable {
    get_model(id: string): Promise<IWidgetModel> | undefined;
    has_model(id: string): boolean;
  }

  export interface IManaged {
    manager: IManager;
  }

  export const WidgetRenderer: new (options: IRenderMime.IRendererOptions, manager?: IManager) => IRenderMime.IRenderer;

  export function registerWidgetManager(
    context: DocumentRegistry.IContext<INotebookModel>,
    rendermime: IRenderMimeRegistry,
    renderers: Iterable<IManaged>
  ): IDisposable;
}
