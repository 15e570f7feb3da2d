import type { INotebookContent } from '@jupyterlab/nbformat';
import { NotebookModel } from '@jupyterlab/notebook';
import { beforeEach, expect, it, vi } from 'vitest';
import { nameKernel } from './kernelless';

beforeEach(() => {
  // Yjs warns of cells that JupyterLab makes before they are in a document.
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
});

function saved(metadata: object): INotebookContent['metadata'] {
  const model = new NotebookModel();
  model.fromJSON({ nbformat: 4, nbformat_minor: 5, metadata, cells: [] } as INotebookContent);
  nameKernel(model);
  return (model.toJSON() as INotebookContent).metadata;
}

const ON_RANKS = { jupyter_dist: { group: 'train', ranks: 'all' } };
const PYTHON = { name: 'python3', display_name: 'Python 3', language: 'python' };

it('names the kernel Ranks in a file of a notebook on ranks that names none', () => {
  const { kernelspec, language_info: language } = saved(ON_RANKS);
  expect([kernelspec?.name, language?.name]).toEqual(['ranks', 'python']);
});

it('keeps the kernel of a file, and names none of a notebook that is on no ranks', () => {
  expect(saved({ ...ON_RANKS, kernelspec: PYTHON }).kernelspec).toEqual(PYTHON);
  expect(saved({}).kernelspec).toBeUndefined();
});
