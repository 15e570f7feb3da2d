/**
 * A notebook on ranks needs no kernel. If its file names none, JupyterLab asks
 * for one when it opens, in a dialog over the live output, and saves an empty
 * name, which other tools take for the name of a kernel.
 */
import type { INotebookContent } from '@jupyterlab/nbformat';
import type { INotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import { getNotebookTarget } from '../targets/target';

export function keepKernelless({ context }: NotebookPanel): void {
  saveNoEmptyName(context.model);
  void context.ready.then(() => {
    const { model, sessionContext } = context;
    if (getNotebookTarget(model) && !model.defaultKernelName) {
      // A running session is still joined, and JupyterLab asks for a kernel when a cell needs one.
      sessionContext.kernelPreference = { ...sessionContext.kernelPreference, shouldStart: false };
    }
  });
}

/** JupyterLab adds the empty name whenever it saves the notebook. */
function saveNoEmptyName(model: INotebookModel): void {
  const toJSON = model.toJSON.bind(model);
  model.toJSON = () => {
    const content = toJSON() as INotebookContent;
    if (content.metadata.kernelspec?.name === '') {
      delete content.metadata.kernelspec;
    }
    return content as unknown as ReturnType<typeof toJSON>;
  };
}
