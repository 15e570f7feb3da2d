/**
 * Where a cell runs: on the kernel, or on ranks of a group. Saved in the
 * metadata of the notebook, and of cells with their own target.
 */
import type { IReadWanted, IWantedGroup } from '../../tokens';
import { firstCharacters } from '../format/characters';
import { MAX_EXPRESSION_LENGTH } from '../format/ranks';
import { readWanted } from '../groups/wanted';

/** Longer than any group's name; a truncated name is reported as unknown. */
const MAX_NAME = 200;

/** The key in the metadata of notebooks and cells. */
export const METADATA_KEY = 'jupyter_dist';

const LANGUAGE_KEY = 'language_info';

/** Ranks of a group. */
export interface IRankTarget {
  /** The name of a group, or its id. */
  group: string;
  /** A rank expression, as entered. */
  ranks: string;
}

/** Ranks, or null for the kernel. */
export type Target = IRankTarget | null;

/** The target of a cell; undefined: the notebook's. */
export type CellTarget = { target: 'kernel' } | { group?: string; ranks: string } | undefined;

/** What notebook and cell models have in common here. */
export interface IHasMetadata {
  getMetadata(key: string): unknown;
  setMetadata(key: string, value: unknown): void;
  deleteMetadata(key: string): void;
}

export function getNotebookTarget(notebook: IHasMetadata): Target {
  const { group, ranks } = fields(notebook);
  return typeof group === 'string' && group
    ? { group: firstCharacters(group, MAX_NAME), ranks: expression(ranks) }
    : null;
}

/** The group that the notebook wants, as it was read. */
export function getWanted(notebook: IHasMetadata): IReadWanted {
  return readWanted(fields(notebook).start);
}

/** Set where cells run; `wanted`: what starts the group again, by default as before if it is the same group. */
export function setNotebookTarget(notebook: IHasMetadata, target: Target, wanted?: IWantedGroup): void {
  if (target) {
    const { group, start, keep_undo: keepsUndo } = fields(notebook);
    const kept = wanted ?? (group === target.group ? start : undefined);
    notebook.setMetadata(METADATA_KEY, {
      ...target,
      ...(kept ? { start: kept } : {}),
      ...(keepsUndo === true ? { keep_undo: true } : {})
    });
    // A kernel writes it when it has started; a notebook without one would have no highlighting, here and elsewhere.
    const language = notebook.getMetadata(LANGUAGE_KEY) as { name?: unknown } | undefined;
    if (!language?.name) {
      notebook.setMetadata(LANGUAGE_KEY, { name: 'python' });
    }
  } else {
    notebook.deleteMetadata(METADATA_KEY);
  }
}

/** Whether ranks keep the state before each cell of the notebook, so that it can be undone. */
export function keepsUndo(notebook: IHasMetadata): boolean {
  return fields(notebook).keep_undo === true;
}

/** Set whether they do; without effect on a notebook that runs on a kernel. */
export function setKeepsUndo(notebook: IHasMetadata, isKept: boolean): void {
  if (getNotebookTarget(notebook)) {
    const { ...kept } = fields(notebook);
    delete kept.keep_undo;
    notebook.setMetadata(METADATA_KEY, isKept ? { ...kept, keep_undo: true } : kept);
  }
}

export function getCellTarget(cell: IHasMetadata): CellTarget {
  const { target, group, ranks } = fields(cell);
  if (target === 'kernel') {
    return { target };
  }
  if (typeof ranks !== 'string' && typeof group !== 'string') {
    return undefined;
  }
  return {
    ...(typeof group === 'string' && group ? { group: firstCharacters(group, MAX_NAME) } : {}),
    ranks: expression(ranks)
  };
}

export function setCellTarget(cell: IHasMetadata, target: CellTarget): void {
  if (target) {
    cell.setMetadata(METADATA_KEY, { ...target });
  } else {
    cell.deleteMetadata(METADATA_KEY);
  }
}

/** Where a cell runs, from its own and the notebook's metadata. */
export function resolveTarget(notebook: IHasMetadata, cell: IHasMetadata): Target {
  const common = getNotebookTarget(notebook);
  const own = getCellTarget(cell);
  if (!own) {
    return common;
  }
  if ('target' in own) {
    return null;
  }
  const group = own.group ?? common?.group;
  // An override without a group is ignored in a notebook without one.
  return group ? { group, ranks: own.ranks } : null;
}

/** The metadata as an object; a notebook may contain anything. */
function fields(model: IHasMetadata): Record<string, unknown> {
  const value = model.getMetadata(METADATA_KEY);
  return value && typeof value === 'object' ? (value as Record<string, unknown>) : {};
}

function expression(ranks: unknown): string {
  // One character over the limit is enough for the error.
  return typeof ranks === 'string' && ranks.trim() ? firstCharacters(ranks, MAX_EXPRESSION_LENGTH + 1) : 'all';
}
