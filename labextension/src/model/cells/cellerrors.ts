/** How cells on ranks fail: as errors that JupyterLab knows from its kernels. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import { KernelError } from '@jupyterlab/notebook';
import type { DistError } from '../../services/errors';
import { translation } from '../../services/translation';
import { asOutput } from './celloutput';
import type { IOutcome } from './cellrun';
import type { CellAborted } from './queue';

/** The server did not take it: say why where the output would be. */
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

/** What to do about it on this page: the server speaks to programs too. */
function hintFor({ code, hint }: DistError): string {
  const trans = translation();
  const words: Record<string, string> = {
    unknown_group: trans.__('Choose another group in the rank picker in the toolbar, or start one there with "Start group\u2026".')
  };
  return words[code] ?? hint;
}

/** How a cell on ranks ended. */
export function failure({ execution, error }: IOutcome): KernelError {
  return kernelError(
    error?.ename ?? execution.state,
    error?.evalue ?? '',
    error?.traceback ?? []
  );
}

/** It was queued and never ran. */
export function aborted(reason: CellAborted): KernelError {
  return kernelError('Aborted', reason.message, []);
}

/** What makes NotebookActions stop quietly, as for a kernel's error. */
function kernelError(
  ename: string,
  evalue: string,
  traceback: string[]
): KernelError {
  return new KernelError({
    status: 'error',
    execution_count: 0,
    ename,
    evalue,
    traceback
  } as unknown as ConstructorParameters<typeof KernelError>[0]);
}
