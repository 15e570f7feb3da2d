/** Options of a run that a notebook has for all of its cells: fields of its metadata, and of their requests. */
import type { IRunRequest } from '../../services/protocol';
import { fields, type IHasMetadata, METADATA_KEY } from './fields';

const added: (keyof IRunRequest)[] = [];

/** Add an option, which is on or off; plugins add theirs. */
export function addRunOption(name: keyof IRunRequest): void {
  added.push(name);
}

/** The options that are on. */
export function runOptions(notebook: IHasMetadata): Partial<IRunRequest> {
  return Object.fromEntries(added.filter(name => hasRunOption(notebook, name)).map(name => [name, true]));
}

export function hasRunOption(notebook: IHasMetadata, name: keyof IRunRequest): boolean {
  return fields(notebook)[name] === true;
}

/** Set whether it is on; without effect on a notebook that runs on a kernel. */
export function setRunOption(notebook: IHasMetadata, name: keyof IRunRequest, isOn: boolean): void {
  const kept = { ...fields(notebook) };
  delete kept[name];
  if (kept.group) {
    notebook.setMetadata(METADATA_KEY, isOn ? { ...kept, [name]: true } : kept);
  }
}
