/**
 * A cell that is set to run on ranks must never run in another process, where
 * it would still have effects: `rm -rf` needs no rank.
 */
import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import { INotebookCellExecutor, Notebook, NotebookActions, runCell } from '@jupyterlab/notebook';
import { DistError } from '../../../services/errors';
import type { IErrorBody } from '../../../services/protocol';
import { aborted, refuse } from './cellerrors';
import { CellAborted } from './queue';
import { resolveTarget } from '../../targets/target';

type IRunCellOptions = INotebookCellExecutor.IRunCellOptions;

/** The page's executor of cells: the executor for ranks, or an error with which rank cells are refused. */
export class CellGuard implements INotebookCellExecutor {
  constructor(inner: INotebookCellExecutor | IErrorBody) {
    this._inner = 'runCell' in inner ? inner : null;
    this.trouble = 'runCell' in inner ? null : inner;
  }

  /** Why cells cannot run on ranks; null if they can. */
  readonly trouble: IErrorBody | null;

  /** How kernel cells run while rank cells are refused. */
  runOnKernel: INotebookCellExecutor['runCell'] = runCell;

  runCell(options: IRunCellOptions): Promise<boolean> {
    if (this._inner) {
      return this._inner.runCell(options);
    }
    const { cell, notebook, onCellExecuted } = options;
    if (cell.model.type !== 'code') {
      return this.runOnKernel(options);
    }
    if (!resolveTarget(notebook, cell.model)) {
      return this._isStopped
        ? Promise.reject(aborted(new CellAborted('A cell before this one was refused.')))
        : this.runOnKernel(options);
    }
    // *Run All* submits all cells at once: those after this one must not run.
    this._isStopped = true;
    setTimeout(() => (this._isStopped = false));
    const error = refuse(cell.model as ICodeCellModel, new DistError(this.trouble!));
    onCellExecuted({ cell, success: false, error });
    return Promise.reject(error);
  }

  private _isStopped = false;
  private readonly _inner: INotebookCellExecutor | null;
}

type Action = (notebook: Notebook, ...args: unknown[]) => Promise<boolean>;

/** The actions that run the selected cells; the other `run...` actions run more of the notebook. */
const RUNS_SELECTED = ['run', 'runAndAdvance', 'runAndInsert'];

/**
 * For pages where another extension runs the cells: its executor cannot be
 * replaced, so the actions are stopped if they include a rank cell.
 */
export function blockRankCells(trouble: IErrorBody): void {
  const actions = NotebookActions as unknown as Record<string, Action>;
  const names = Object.getOwnPropertyNames(actions).filter(name => name.startsWith('run'));
  for (const name of names) {
    const run = actions[name];
    actions[name] = (notebook, ...args) => {
      const refused = chosen(name, notebook, args).filter(({ model }) => goesToRanks(notebook, model));
      if (refused.length === 0) {
        return run(notebook, ...args);
      }
      refused.forEach(({ model }) => refuse(model as ICodeCellModel, new DistError(trouble)));
      return Promise.resolve(false);
    };
  }
}

function chosen(name: string, notebook: Notebook, [cells]: unknown[]): readonly Cell[] {
  if (name === 'runCells') {
    return cells as Cell[];
  }
  return RUNS_SELECTED.includes(name)
    ? notebook.widgets.filter(cell => notebook.isSelectedOrActive(cell))
    : notebook.widgets;
}

function goesToRanks({ model: notebook }: Notebook, cell: Cell['model']): boolean {
  return cell.type === 'code' && notebook !== null && resolveTarget(notebook, cell) !== null;
}
