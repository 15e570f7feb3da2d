/**
 * Where a cell goes: the kernel, or ranks of a group. Kept in the metadata of
 * the notebook, and of a cell that has its own.
 */
import { MAX_EXPRESSION_LENGTH } from '../format/ranks';

/** No group's name is as long; a cut one is that of no group, and is said to be unknown. */
const MAX_NAME = 200;

/** The key in the metadata of notebooks and cells. */
export const METADATA_KEY = 'jupyter_dist';

/** Ranks of a group. */
export interface IRankTarget {
  /** A group's name; its id is understood too. */
  group: string;
  /** A rank expression, as it was chosen. */
  ranks: string;
}

/** Ranks, or null: the kernel. */
export type Target = IRankTarget | null;

/** What a cell can say of its own; undefined: it goes where the notebook says. */
export type CellTarget =
  | { target: 'kernel' }
  | { group?: string; ranks: string }
  | undefined;

/** Notebook and cell models alike, as far as needed here. */
export interface IHasMetadata {
  getMetadata(key: string): unknown;
  setMetadata(key: string, value: unknown): void;
  deleteMetadata(key: string): void;
}

export function getNotebookTarget(notebook: IHasMetadata): Target {
  const { group, ranks } = fields(notebook);
  return typeof group === 'string' && group
    ? { group: group.slice(0, MAX_NAME), ranks: expression(ranks) }
    : null;
}

export function setNotebookTarget(
  notebook: IHasMetadata,
  target: Target
): void {
  if (target) {
    notebook.setMetadata(METADATA_KEY, { ...target });
  } else {
    notebook.deleteMetadata(METADATA_KEY);
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
    ...(typeof group === 'string' && group ? { group: group.slice(0, MAX_NAME) } : {}),
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

/** Where a cell goes, all things considered. */
export function resolveTarget(
  notebook: IHasMetadata,
  cell: IHasMetadata
): Target {
  const common = getNotebookTarget(notebook);
  const own = getCellTarget(cell);
  if (!own) {
    return common;
  }
  if ('target' in own) {
    return null;
  }
  const group = own.group ?? common?.group;
  // An override without a group, in a notebook that has none, has no meaning.
  return group ? { group, ranks: own.ranks } : null;
}

/** The metadata as an object: a notebook from elsewhere may say anything. */
function fields(model: IHasMetadata): Record<string, unknown> {
  const value = model.getMetadata(METADATA_KEY);
  return value && typeof value === 'object'
    ? (value as Record<string, unknown>)
    : {};
}

function expression(ranks: unknown): string {
  // One letter too many is enough for an error that says so.
  return typeof ranks === 'string' && ranks.trim() ? ranks.slice(0, MAX_EXPRESSION_LENGTH + 1) : 'all';
}
