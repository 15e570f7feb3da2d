/** Goes to the cell of an execution. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { IExecution } from '../../services/protocol';

/** Open the notebook at the cell; false if there is no such cell. */
export async function showCell(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  execution: IExecution
): Promise<boolean> {
  if (!execution.notebook) {
    return false;
  }
  await app.commands.execute('docmanager:open', { path: execution.notebook });
  const panel = tracker?.find(({ context }) => context.path === execution.notebook);
  await panel?.context.ready;
  const at = panel?.content.widgets.findIndex(({ model }) => model.id === execution.cell_id) ?? -1;
  if (panel && at >= 0) {
    panel.content.activeCellIndex = at;
    await panel.content.scrollToItem(at, 'smart');
  }
  return at >= 0;
}
