/** Goes to the cell of an execution, or to a line of a cell or a file. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { DocumentWidget } from '@jupyterlab/docregistry';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { ICodeLine, IExecution, IExecutions } from '../../services/protocol';

/** Open the notebook at the cell; false if there is no such cell. */
export async function showCell(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  execution: IExecution
): Promise<boolean> {
  if (!execution.notebook) {
    return false;
  }
  const find = () => tracker?.find(({ context }) => context.path === execution.notebook);
  const open = find();
  if (open) {
    app.shell.activateById(open.id); // docmanager:open would close the notebook of a page of Notebook 7
  } else {
    await app.commands.execute('docmanager:open', { path: execution.notebook });
  }
  const panel = find();
  await panel?.context.ready;
  const at = panel?.content.widgets.findIndex(({ model }) => model.id === execution.cell_id) ?? -1;
  if (panel && at >= 0) {
    panel.content.activeCellIndex = at;
    await panel.content.scrollToItem(at, 'smart');
  }
  return at >= 0;
}

/** Open the cell of an execution, or the cell that the line names, at the line; false if there is no such cell. */
export async function showLine(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  list: () => Promise<IExecutions>,
  id: string,
  place: ICodeLine
): Promise<boolean> {
  const { executions } = await list();
  const ran = executionOf(executions, id, place.name);
  if (!ran || !(await showCell(app, tracker, ran))) {
    return false;
  }
  const panel = tracker?.find(({ context }) => context.path === ran.notebook);
  const cell = panel?.content.activeCell;
  await cell?.ready;
  if (cell?.editor) {
    panel!.content.mode = 'edit';
    goToLine(cell.editor, place);
  }
  return true;
}

/** Open the file in an editor, at the line; false if there is no such file. Notebook 7 opens it in another tab, at its begin. */
export async function showFile(app: JupyterFrontEnd, path: string, place: ICodeLine): Promise<boolean> {
  try {
    await app.serviceManager.contents.get(path, { content: false });
  } catch {
    return false;
  }
  const widget: DocumentWidget | undefined = await app.commands.execute('docmanager:open', { path, factory: 'Editor' });
  await widget?.context.ready;
  const { editor } = (widget?.content ?? {}) as { editor?: CodeEditor.IEditor };
  if (editor) {
    goToLine(editor, place);
  }
  return true;
}

/** Move the cursor to a line, wherever that is now. */
function goToLine(editor: CodeEditor.IEditor, { line, code }: ICodeLine): void {
  editor.focus();
  const position = { line: lineIn(editor, line, code), column: 0 };
  editor.setCursorPosition(position);
  editor.revealPosition(position);
}

/** The last execution of "cell [7]"; the execution itself, if the line is in its cell. */
function executionOf(executions: readonly IExecution[], id: string, name: string): IExecution | undefined {
  const own = executions.find(execution => execution.id === id);
  const count = Number(/\[(\d+)\]/.exec(name)?.[1] ?? NaN);
  if (Number.isNaN(count) || own?.execution_count === count) {
    return own;
  }
  return executions.filter(execution => execution.execution_count === count && execution.notebook).pop();
}

/** Where the line is now, from 0: the user may have edited the code since it ran. */
function lineIn(editor: CodeEditor.IEditor, line: number, code: string): number {
  const isHere = (at: number): boolean => editor.getLine(at)?.trim() === code.trim();
  const last = editor.lineCount - 1;
  if (code && !isHere(line - 1)) {
    const found = Array.from({ length: last + 1 }, (_, at) => at).find(isHere);
    return found ?? Math.min(last, line - 1);
  }
  return Math.min(last, line - 1);
}

/** The notebook that an element is in. */
export function panelOf(tracker: INotebookTracker | null, element: HTMLElement): NotebookPanel | null {
  return tracker?.find(({ node }) => node.contains(element)) ?? null;
}

/** The cell that an element is in. */
export function cellOf(tracker: INotebookTracker | null, node: HTMLElement): ICodeCellModel | null {
  const around = node.closest('.jp-Cell');
  const panel = around && panelOf(tracker, node);
  const cell = around && panel?.content.widgets.find(({ node }) => node === around);
  return cell?.model.type === 'code' ? (cell.model as ICodeCellModel) : null;
}
