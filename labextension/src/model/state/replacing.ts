/** The variables with which new processes of dead ranks can begin. Pure. */
import type { IGroup, ILastSave, IReplaceRequest, IUndoableCell } from '../../services/protocol';
import { formatRanks } from '../format/ranks';

/** `undo`: copies, after the others have undone the cell in which they died; `save`: the variables of the last save; `copy`: copies of the other ranks'; `cells`: none, and their cells run again; `empty`: none. */
export type ReplaceChoice = 'undo' | 'save' | 'copy' | 'cells' | 'empty';

/** The choices for a group, with their parameters. */
export interface IReplaceOffer {
  /** The ranks that are dead, or have lost their device. */
  readonly ranks: string;
  /** The ranks that live. */
  readonly others: string;
  /** The cell in which they died and those after it, newest first, where the other ranks can undo them. */
  readonly lost: readonly IUndoableCell[];
  /** The save that the group can restore. */
  readonly save: ILastSave | null;
  /** Whether a single rank lives, which cannot be compared with another one: all of its variables would be copied. */
  readonly copiesAll: boolean;
  /** The choice that brings most back. */
  readonly best: ReplaceChoice;
}

/** What can be chosen; null: no rank is to be replaced. */
export function replaceOffer(
  group: Pick<IGroup, 'ranks' | 'last_save'>,
  lost: readonly IUndoableCell[] = []
): IReplaceOffer | null {
  const isLost = ({ state, process_group }: IGroup['ranks'][number]): boolean =>
    state === 'dead' || process_group === 'lost';
  const numbers = (lost: boolean): number[] => group.ranks.filter(one => isLost(one) === lost).map(({ rank }) => rank);
  const [ranks, others] = [numbers(true), numbers(false)];
  if (ranks.length === 0) {
    return null;
  }
  const save = group.last_save ?? null;
  return {
    ranks: formatRanks(ranks),
    others: formatRanks(others),
    lost,
    save,
    copiesAll: others.length === 1,
    best: lost.length ? 'undo' : save ? 'save' : 'cells'
  };
}

/** The body of the request for a choice. */
export function replaceBody({ save, copiesAll }: IReplaceOffer, choice: ReplaceChoice): IReplaceRequest {
  if (choice === 'save' && save) {
    return { state: 'save', save: save.name, folder: save.folder };
  }
  if (choice === 'copy' || choice === 'undo') {
    return { state: choice, ...(copiesAll ? { others: 'copy' } : {}) };
  }
  return { state: 'empty' };
}
