/** Everything that a run writes into a notebook, in one place, so that one page can leave it to another. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IError } from '@jupyterlab/nbformat';
import { helpUrl } from '../../services/errors';
import type { IErrorBody, IExecution, IRanksBundle } from '../../services/protocol';
import { FINAL_STATES } from '../../services/protocol';
import { bundleOutput } from '../executions/bundle';
import { readBundle } from '../executions/parsebundle';

export class CellOutput {
  constructor(cell: ICodeCellModel) {
    this.cell = cell;
  }

  readonly cell: ICodeCellModel;

  /** Replace the output of the cell by the output of ranks. */
  write(bundle: IRanksBundle): void {
    const { cell } = this;
    if (!this._mayWrite) {
      return;
    }
    const output = bundleOutput(bundle);
    // `set` reuses the renderer, which avoids flicker.
    if (savedBundle(cell)) {
      cell.outputs.set(0, output);
    } else {
      cell.outputs.clear();
      cell.outputs.add(output);
    }
  }

  /** Clear the output. */
  clear(): void {
    if (this._mayWrite) {
      this.cell.outputs.clear();
    }
  }

  /** Show `[*]`, at each write, because JupyterLab clears it when another cell fails. */
  showRunning(): void {
    if (this._mayWrite && this.cell.executionState !== 'running') {
      this.cell.executionState = 'running';
    }
  }

  /** Show that nothing is running: `[7]` or `[ ]`. */
  showEnded(executionCount: number | null): void {
    if (this._mayWrite) {
      this.cell.executionCount = executionCount;
      this.cell.executionState = 'idle';
    }
  }

  /** Record the timing like JupyterLab does for a kernel's cell, under the same names. */
  recordTiming(execution: IExecution): void {
    if (!this._mayWrite) {
      return;
    }
    const iso = (at: number): string => new Date(at * 1000).toISOString();
    const { started_at: started, ended_at: ended } = execution;
    this.cell.setMetadata('execution', {
      ...(started
        ? {
            'iopub.status.busy': iso(started),
            'iopub.execute_input': iso(started),
            'shell.execute_reply.started': iso(started)
          }
        : {}),
      ...(ended
        ? { 'shell.execute_reply': iso(ended), 'iopub.status.idle': iso(ended) }
        : {})
    });
  }

  private get _mayWrite(): boolean {
    return !this.cell.isDisposed;
  }
}

/** The saved execution of a cell; null if its output is anything else. */
export function savedBundle(cell: ICodeCellModel): IRanksBundle | null {
  return cell.outputs.length === 1 ? readBundle(cell.outputs.get(0).toJSON()) : null;
}

/** The saved execution of a cell, if it had not ended. */
export function openBundle(cell: ICodeCellModel): IRanksBundle | null {
  const bundle = savedBundle(cell);
  return bundle && !FINAL_STATES.has(bundle.state) ? bundle : null;
}

/** One of our errors, as an output that any notebook can show. */
export function asOutput({ code, message, hint }: IErrorBody): IError {
  return {
    output_type: 'error',
    ename: code,
    evalue: message,
    traceback: [message, ...(hint ? [hint] : []), helpUrl(code)]
  };
}
