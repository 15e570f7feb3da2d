/** The rank that answers for a cell while its user types: the first living one of the cell's ranks. */
import type { ICellModel } from '@jupyterlab/cells';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IDistGroups } from '../../tokens';
import { parseRanks } from '../format/ranks';
import { takesCells } from '../groups/groups';
import { resolveTarget, Target } from './target';

export interface IRankPlace {
  readonly group: string;
  readonly rank: number;
}

/** A widget that is no notebook and whose code runs on ranks: a console. */
export interface IHasPlace {
  /** The rank that answers for it; null if none can. */
  readonly rankPlace: IRankPlace | null;
}

export function hasPlace(widget: object): widget is IHasPlace {
  return 'rankPlace' in widget;
}

/** Null if the cell runs on the kernel, or no rank can answer. */
export function placeOf(groups: IDistGroups, notebook: INotebookModel | null, cell?: ICellModel): IRankPlace | null {
  return placeIn(groups, notebook && cell?.type === 'code' ? resolveTarget(notebook, cell) : null);
}

/** The first living rank of a target. */
export function placeIn(groups: IDistGroups, target: Target): IRankPlace | null {
  const group = target && groups.find(target.group);
  if (!group || !takesCells(group)) {
    return null;
  }
  try {
    const living = parseRanks(target.ranks, group).filter(rank => group.ranks[rank].state !== 'dead');
    return living.length > 0 ? { group: group.id, rank: living[0] } : null;
  } catch {
    return null; // the picker shows what is wrong with the expression
  }
}
