/** All that a run writes into a notebook: the one place for it, so that one page can leave it to another. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IError } from '@jupyterlab/nbformat';
import { helpUrl } from '../../services/help';
import type { IErrorBody, IExecution, IRanksBundle } from '../../services/protocol';
import { FINAL_STATES } from '../../services/protocol';
import { bundleOutput } from '../executions/bundle';
import { readBundle } from '../executions/parsebundle';

export class CellOutput {
  constructor(cell: ICodeCellModel) {
    this.cell = cell;
  }

  readonly cell: ICodeCellModel;

  /** Put the output of ranks into the cell, in place of what is there. */
  write(bundle: IRanksBundle): void {
    const { cell } = this;
    if (!this._mayWrite) {
      return;
    }
    const output = bundleOutput(bundle);
    // Setting re-uses the renderer, so that nothing flickers.
    if (savedBundle(cell)) {
      cell.outputs.set(0, output);
    } else {
      cell.outputs.clear();
      cell.outputs.add(output);
    }
  }

  /** Leave no output. */
  clear(): void {
    if (this._mayWrite) {
      this.cell.outputs.clear();
    }
  }

  /** `[*]`: anew at each write, as JupyterLab clears it when another cell fails. */
  showRunning(): void {
    if (this._mayWrite && this.cell.executionState !== 'running') {
      this.cell.executionState = 'running';
    }
  }

  /** Nothing runs here any more: `[7]`, or `[ ]`. */
  showEnded(executionCount: number | null): void {
    if (this._mayWrite) {
      this.cell.executionCount = executionCount;
      this.cell.executionState = 'idle';
    }
  }

  /** What JupyterLab records of a kernel's cell, under the same names. */
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

/** What a cell has of an execution; null when its output is anything else. */
export function savedBundle(cell: ICodeCellModel): IRanksBundle | null {
  return cell.outputs.length === 1 ? readBundle(cell.outputs.get(0).toJSON()) : null;
}

/** What a cell has of an execution that was not at its end. */
export function openBundle(cell: ICodeCellModel): IRanksBundle | null {
  const bundle = savedBundle(cell);
  return bundle && !FINAL_STATES.has(bundle.state) ? bundle : null;
}

/** An error of the product, as an output that any notebook can show. */
export function asOutput({ code, message, hint }: IErrorBody): IError {
  return {
    output_type: 'error',
    ename: code,
    evalue: message,
    traceback: [message, ...(hint ? [hint] : []), helpUrl(code)]
  };
}
