/** Adds the panel of a group to the main area. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { WidgetTracker } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { Widget } from '@lumino/widgets';

/** Below the current notebook, or where the restored layout has it. */
export async function addPanel<T extends Widget>(
  app: JupyterFrontEnd,
  tracker: WidgetTracker<T>,
  notebooks: INotebookTracker | null,
  panel: T,
  isRestored: boolean
): Promise<void> {
  await tracker.add(panel);
  const beside = notebooks?.currentWidget;
  const below = beside?.isVisible ? ({ mode: 'split-bottom', ref: beside.id } as const) : undefined;
  app.shell.add(panel, 'main', isRestored ? { activate: false } : below);
}
