/**
 * A notebook that is on ranks needs no kernel. Where its file names none,
 * JupyterLab asks for one as it opens, over the output that is live behind the
 * question, and saves an empty name, which other tools take for a kernel's.
 */
import type { INotebookContent } from '@jupyterlab/nbformat';
import type { INotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import { getNotebookTarget } from './target';

export function keepKernelless({ context }: NotebookPanel): void {
  saveNoEmptyName(context.model);
  void context.ready.then(() => {
    const { model, sessionContext } = context;
    if (getNotebookTarget(model) && !model.defaultKernelName) {
      // A session that runs is joined all the same, and a kernel is asked for when a cell wants one.
      sessionContext.kernelPreference = { ...sessionContext.kernelPreference, shouldStart: false };
    }
  });
}

/** JupyterLab adds the empty name whenever the notebook is written. */
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
