/**
 * A notebook on ranks needs no kernel. If its file names none, JupyterLab asks
 * for one when it opens, in a dialog over the live output, and saves an empty
 * name, which other tools take for the name of a kernel. The saved file names
 * the kernel *Ranks*: with it, papermill and nbconvert run the cells on ranks.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookContent } from '@jupyterlab/nbformat';
import type { INotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import type { Signal } from '@lumino/signaling';
import { getNotebookTarget } from '../targets/target';

/** The kernel that runs whole notebooks on ranks, for what has no picker. */
const RANKS = { name: 'ranks', display_name: 'Ranks', language: 'python' };

export function keepKernelless({ context }: NotebookPanel): void {
  nameKernel(context.model);
  void context.ready.then(() => {
    const { model, sessionContext } = context;
    if (getNotebookTarget(model) && ['', RANKS.name].includes(model.defaultKernelName)) {
      // A running session is still joined, and JupyterLab asks for a kernel when a cell needs one: for any but *Ranks*.
      sessionContext.kernelPreference = { ...sessionContext.kernelPreference, name: undefined, shouldStart: false };
      void sessionContext.ready.then(() => noteWithout(sessionContext));
    }
  });
}

/** The status bar reads the status of a kernel when it changes: without one it would show *Initializing* for ever. */
function noteWithout(sessionContext: ISessionContext): void {
  if (!sessionContext.isDisposed && !sessionContext.session?.kernel) {
    (sessionContext.statusChanged as Signal<ISessionContext, string>).emit(sessionContext.kernelDisplayStatus);
  }
}

/** JupyterLab adds the empty name whenever it saves a notebook that names no kernel. */
export function nameKernel(model: INotebookModel): void {
  const toJSON = model.toJSON.bind(model);
  model.toJSON = () => {
    const content = toJSON() as INotebookContent;
    const { metadata } = content;
    if (!metadata.kernelspec?.name && getNotebookTarget(model)) {
      metadata.kernelspec = { ...RANKS };
      if (!metadata.language_info?.name) {
        metadata.language_info = { ...metadata.language_info, name: RANKS.language }; // papermill needs it
      }
    } else if (metadata.kernelspec?.name === '') {
      delete metadata.kernelspec;
    }
    return content as unknown as ReturnType<typeof toJSON>;
  };
}
