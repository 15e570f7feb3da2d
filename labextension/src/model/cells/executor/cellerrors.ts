/** Errors of cells on ranks, in the form of kernel errors, which JupyterLab knows. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import { KernelError } from '@jupyterlab/notebook';
import { type DistError, isPassing } from '../../../services/errors';
import { translation } from '../../../services/translation';
import { asOutput } from '../output/celloutput';
import type { ICellOutcome } from '../output/cellrun';
import type { CellAborted } from './queue';

/** Show why the server did not accept a cell, as its output. */
export function refuse(model: ICodeCellModel | null, error: DistError): KernelError {
  const { message } = error;
  const output = asOutput({ code: error.code ?? 'internal', message, hint: hintFor(error) });
  if (model) {
    model.outputs.clear();
    model.outputs.add(output);
    model.executionState = 'idle';
  }
  return kernelError(output.ename, output.evalue, output.traceback);
}

/** What to do about an error that ends while its output stays: who opens the notebook later need not do it. */
export function passingAdvice({ code, hint }: DistError): string {
  return code === 'rank_dead' ? hint : '';
}

/** A hint for users of the page; the server's hints are for programs, too. */
function hintFor(error: DistError): string {
  const trans = translation();
  if (error.isUnanswered && (isPassing(error) || error.code === 'server_unreachable')) {
    return trans.__('If the cell has reached its ranks it runs, and is shown here as soon as the server says so.');
  }
  return error.code === 'unknown_group'
    ? trans.__('Choose another group in the rank picker in the toolbar, or start one there with "Start group\u2026".')
    : passingAdvice(error)
      ? ''
      : error.hint;
}

/** The error of a cell on ranks that failed. */
export function failure({ execution, error }: ICellOutcome): KernelError {
  return kernelError(error?.ename ?? execution.state, error?.evalue ?? '', error?.traceback ?? []);
}

/** The error of a cell that was queued and never ran. */
export function aborted(reason: CellAborted): KernelError {
  return kernelError('Aborted', reason.message, []);
}

/** An error on which NotebookActions stop without a message, as for a kernel's error. */
function kernelError(ename: string, evalue: string, traceback: string[]): KernelError {
  return new KernelError({
    status: 'error',
    execution_count: 0,
    ename,
    evalue,
    traceback
  } as unknown as ConstructorParameters<typeof KernelError>[0]);
}
