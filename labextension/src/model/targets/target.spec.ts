import { describe, expect, it } from 'vitest';
import { parseRanks } from '../format/ranks';
import { getCellTarget, METADATA_KEY, resolveTarget, setCellTarget, setNotebookTarget } from './target';
import { addRunOption, hasRunOption, runOptions, setRunOption } from './runoptions';

class Metadata {
  constructor(value?: unknown) {
    if (value !== undefined) {
      this.values.set(METADATA_KEY, value);
    }
  }
  getMetadata = (key: string): unknown => this.values.get(key);
  setMetadata = (key: string, value: unknown): void => {
    this.values.set(key, value);
  };
  deleteMetadata = (key: string): void => {
    this.values.delete(key);
  };
  readonly values = new Map<string, unknown>();
}

describe('resolveTarget', () => {
  const train = { group: 'train', ranks: '0-1' };

  it('is the kernel if nothing is set, or nonsense', () => {
    for (const value of [undefined, null, 3, [], { group: 3 }, { ranks: '0' }]) {
      expect(resolveTarget(new Metadata(value), new Metadata())).toBeNull();
    }
  });

  it('is what the notebook says', () => {
    expect(resolveTarget(new Metadata(train), new Metadata())).toEqual(train);
    const bare = new Metadata({ group: 'train' });
    expect(resolveTarget(bare, new Metadata())?.ranks).toBe('all');
  });

  it('is what the cell says, if it does', () => {
    const notebook = new Metadata(train);
    const to = (own: unknown) => resolveTarget(notebook, new Metadata(own));
    expect(to({ ranks: '3' })).toEqual({ group: 'train', ranks: '3' });
    expect(to({ group: 'eval', ranks: '3' })).toEqual({ group: 'eval', ranks: '3' });
    expect(to({ target: 'kernel' })).toBeNull();
    expect(resolveTarget(new Metadata(), new Metadata({ ranks: '0' }))).toBeNull();
  });
});

describe('setting a target', () => {
  it('says which language the cells are in, as a kernel does', () => {
    const notebook = new Metadata();
    notebook.setMetadata('language_info', { name: '' }); // as JupyterLab fills it in
    setNotebookTarget(notebook, { group: 'train', ranks: 'all' });
    expect(notebook.getMetadata('language_info')).toEqual({ name: 'python' });
    notebook.setMetadata('language_info', { name: 'python', version: '3.11.7' });
    setNotebookTarget(notebook, { group: 'train', ranks: '0' });
    expect(notebook.getMetadata('language_info')).toEqual({ name: 'python', version: '3.11.7' });
  });

  it('leaves no trace when there is nothing to say', () => {
    const notebook = new Metadata();
    setNotebookTarget(notebook, { group: 'train', ranks: 'all' });
    setNotebookTarget(notebook, null);
    notebook.deleteMetadata('language_info');
    setCellTarget(notebook, { target: 'kernel' });
    expect(getCellTarget(notebook)).toEqual({ target: 'kernel' });
    setCellTarget(notebook, undefined);
    expect(notebook.values.size).toBe(0);
  });
});

it('takes no more of a hostile file than it needs to say what is wrong', () => {
  const notebook = new Metadata({ group: 'x'.repeat(1e6), ranks: '0,'.repeat(1e6) });
  const target = resolveTarget(notebook, new Metadata())!;
  expect(target.group).toHaveLength(200);
  expect(() => parseRanks(target.ranks, { world_size: 2 })).toThrow('longer than');
});

describe('an option of runs', () => {
  it('is a field of the notebook that another group does not change, and of no notebook on a kernel', () => {
    addRunOption('silent');
    const notebook = new Metadata({ group: 'train', ranks: 'all', start: { num_ranks: 2 } });
    expect(hasRunOption(notebook, 'silent')).toBe(false);
    setRunOption(notebook, 'silent', true);
    expect(runOptions(notebook)).toEqual({ silent: true });
    setNotebookTarget(notebook, { group: 'eval', ranks: '0' });
    expect(notebook.getMetadata(METADATA_KEY)).toEqual({ group: 'eval', ranks: '0', silent: true });
    setRunOption(notebook, 'silent', false);
    expect(notebook.getMetadata(METADATA_KEY)).toEqual({ group: 'eval', ranks: '0' });
    const onKernel = new Metadata();
    setRunOption(onKernel, 'silent', true);
    expect(hasRunOption(onKernel, 'silent')).toBe(false);
  });
});
