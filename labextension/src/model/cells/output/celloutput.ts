/** Everything that a run writes into a notebook, in one place, so that one page can leave it to another. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IError, IOutput } from '@jupyterlab/nbformat';
import { JSONExt, ReadonlyJSONObject } from '@lumino/coreutils';
import { helpUrl } from '../../../services/errors';
import type { IErrorBody, IExecution, IRanksBundle } from '../../../services/protocol';
import { FINAL_STATES } from '../../../services/protocol';
import { bundleOutput } from '../../outputs/bundle';
import { readBundle } from '../../outputs/parsebundle';
import { hasParts, joinParts, portableOutputs } from '../../outputs/portable';

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
    // While it runs, one output has all: it is written often.
    const isFinal = FINAL_STATES.has(bundle.state);
    const [output, ...parts] = isFinal ? portableOutputs(bundle) : [bundleOutput(bundle)];
    if (isFinal && cell.outputs.length > 1 && savedBundle(cell)?.execution_id === bundle.execution_id) {
      this._update([output, ...parts]);
    } else if (cell.outputs.length === 1 && savedBundle(cell)) {
      // `set` reuses the renderer, which avoids flicker. It comes first: other pages that share the notebook
      // append whatever is inserted, so they would have it after its parts.
      cell.outputs.set(0, output);
      parts.forEach(part => cell.outputs.add(part));
    } else {
      cell.outputs.clear();
      [output, ...parts].forEach(each => cell.outputs.add(each));
    }
  }

  /** Write what differs: widgets that are shown stay, and keep the focus. */
  private _update(outputs: IOutput[]): void {
    const { outputs: shown } = this.cell;
    if (outputs.length < shown.length) {
      shown.clear();
    }
    outputs.forEach((output, i) => {
      if (i >= shown.length) {
        shown.add(output);
      } else if (!JSONExt.deepEqual(output as ReadonlyJSONObject, shown.get(i).toJSON() as ReadonlyJSONObject)) {
        shown.set(i, output);
      }
    });
  }

  /** Trust the cell, as JupyterLab does for a cell that is run: the output of ranks comes next, and an earlier output is cleared. */
  trust(): void {
    if (this._mayWrite && !this.cell.trusted) {
      this.cell.outputs.clear();
      this.cell.trusted = true;
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
      ...(ended ? { 'shell.execute_reply': iso(ended), 'iopub.status.idle': iso(ended) } : {})
    });
  }

  private get _mayWrite(): boolean {
    return !this.cell.isDisposed;
  }
}

/** The saved execution of a cell; null if its output is anything else. */
export function savedBundle(cell: ICodeCellModel): IRanksBundle | null {
  const { outputs } = cell;
  const bundle = outputs.length > 0 ? readBundle(outputs.get(0).toJSON()) : null;
  const own = bundle && joinParts(bundle, outputs.toJSON().slice(1));
  // More outputs than its own: it was not written by a page.
  return own && (outputs.length === 1 || hasParts(bundle)) ? own : null;
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
