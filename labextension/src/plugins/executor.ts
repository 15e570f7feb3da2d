import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookCellExecutor } from '@jupyterlab/notebook';
import { IDistNotebooks } from '../tokens';

/**
 * A plugin of its own, so that it can be switched off beside another
 * extension that runs cells: there is one executor per page.
 */
export const executorPlugin: JupyterFrontEndPlugin<INotebookCellExecutor> = {
  id: 'jupyter-dist:executor',
  description: 'Runs notebook cells on ranks where the notebook says so.',
  autoStart: true,
  requires: [IDistNotebooks],
  provides: INotebookCellExecutor,
  activate: (
    _: JupyterFrontEnd,
    notebooks: IDistNotebooks
  ): INotebookCellExecutor => notebooks.executor
};
