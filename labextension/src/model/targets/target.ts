/**
 * Where a cell runs: on the kernel, or on ranks of a group. Saved in the
 * metadata of the notebook, and of cells with their own target.
 */
import type { IReadWanted, IWantedGroup } from '../../tokens';
import { firstCharacters } from '../format/characters';
import { MAX_EXPRESSION_LENGTH } from '../format/ranks';
import { readWanted } from '../groups/wanted';
import { fields, type IHasMetadata, METADATA_KEY } from './fields';
import { runOptions } from './runoptions';

export { type IHasMetadata, METADATA_KEY } from './fields';

/** Longer than any group's name; a truncated name is reported as unknown. */
const MAX_NAME = 200;

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
    const { group, start } = fields(notebook);
    const kept = wanted ?? (group === target.group ? start : undefined);
    notebook.setMetadata(METADATA_KEY, {
      ...target,
      ...(kept ? { start: kept } : {}),
      ...runOptions(notebook)
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
function expression(ranks: unknown): string {
  // One character over the limit is enough for the error.
  return typeof ranks === 'string' && ranks.trim() ? firstCharacters(ranks, MAX_EXPRESSION_LENGTH + 1) : 'all';
}
