/** Outputs that change after their cell has ended, such as widgets: a part shows them, and one in place of equal ones of ranks. */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { IOutput } from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IDisposable } from '@lumino/disposable';
import type { ExecutionState } from '../../services/protocol';

export interface ILiveItem {
  key: string;
  ranks: string;
  output?: IOutput;
}

/** The output of a cell, with the items to show. */
export interface ILiveOutput<T> {
  group: { id: string };
  /** The ranks of the cell. */
  ranks: string;
  state: ExecutionState;
  items: readonly T[];
}

/** What stands for equal items of ranks in one output. */
export interface ILiveItems extends IDisposable {
  /** The items to show. */
  apply<T extends ILiveItem>(output: ILiveOutput<T>): readonly T[];
}

/** The live outputs of a notebook. */
export interface ILiveOutputs {
  /** The registry with which outputs of this group are shown. */
  registryOf(group: string): IRenderMimeRegistry;
  /** The items of one output; `redraw` is called when `apply` may return something else. */
  open(redraw: () => void): ILiveItems;
}

interface ILiveKind {
  /** Outputs with it may change after the end of their cell. */
  mimeType: string;
  /** The live outputs of a notebook that shows outputs with this registry; its context is null elsewhere. */
  outputsOf(rendermime: IRenderMimeRegistry, context: DocumentRegistry.IContext<INotebookModel> | null): ILiveOutputs;
}

let kind: ILiveKind | null = null;

/** Show outputs of this type; a part's plugin calls it when it is activated. */
export function setLiveKind(shown: ILiveKind): void {
  kind = shown;
}

/** Whether an output has such a part. */
export function isLive(output: IOutput | undefined): boolean {
  return kind !== null && output?.data !== undefined && kind.mimeType in (output.data as object);
}

/** The live outputs of a notebook, as the part shows them. */
export function liveOutputsOf(...[rendermime, context]: Parameters<ILiveKind['outputsOf']>): ILiveOutputs {
  return kind?.outputsOf(rendermime, context) ?? plainOutputs(rendermime);
}

/** All outputs are shown as they are. */
export function plainOutputs(rendermime: IRenderMimeRegistry): ILiveOutputs {
  return {
    registryOf: () => rendermime,
    open: () => ({ apply: ({ items }) => items, isDisposed: false, dispose: () => undefined })
  };
}
