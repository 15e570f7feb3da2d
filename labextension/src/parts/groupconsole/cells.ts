/**
 * The cells of a console, as a notebook without a file: they run, and find their executions again after a reload, as
 * a notebook's cells do.
 */
import { CodeCellModel, ICodeCellModel, RawCellModel } from '@jupyterlab/cells';
import type { IRawCellModel } from '@jupyterlab/cells';
import type { CodeConsole } from '@jupyterlab/console';
import { INotebookModel, NotebookModel } from '@jupyterlab/notebook';
import type { IWantedGroup } from '../../tokens';
import { setNotebookTarget } from '../../model/targets/target';
import type { IRankTarget } from '../../model/targets/target';

export class ConsoleCells implements CodeConsole.IModelFactory {
  constructor(target: IRankTarget, wanted: IWantedGroup) {
    setNotebookTarget(this.notebook, target, wanted);
  }

  readonly notebook: INotebookModel = new NotebookModel();
  readonly codeCellContentFactory = CodeCellModel.defaultContentFactory;

  /** The id of the next cell, which ran before the page was reloaded; null: a new id. */
  next: string | null = null;

  createCodeCell(): ICodeCellModel {
    this.notebook.sharedModel.addCell({ cell_type: 'code', ...(this.next ? { id: this.next } : {}) });
    this.next = null;
    return this.notebook.cells.get(this.notebook.cells.length - 1) as ICodeCellModel;
  }

  createRawCell(options: ConstructorParameters<typeof RawCellModel>[0]): IRawCellModel {
    return new RawCellModel(options);
  }

  /** The console has cleared a cell. If the cell still runs, the page shows a notification. */
  remove(id: string): void {
    const index = this.notebook.sharedModel.cells.findIndex(cell => cell.getId() === id);
    if (index >= 0) {
      this.notebook.sharedModel.deleteCell(index);
    }
  }

  dispose(): void {
    this.notebook.dispose();
  }
}
