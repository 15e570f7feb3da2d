/** The variables with which new processes of dead ranks can begin. Pure. */
import type { IGroup, IReplaceRequest } from '../../services/protocol';
import { formatRanks } from '../format/ranks';

/** A choice that a part adds. */
export interface IReplaceChoice {
  /** Unique among the choices. */
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  /** The request; null: it cannot be chosen now, and the hint has the reason. */
  readonly body: IReplaceRequest | null;
}

/** `copy`: copies of the other ranks'; `cells`: none, and their cells run again; `empty`: none; others are of parts. */
export type ReplaceChoice = string;

/** The choices for a group, with their parameters. */
export interface IReplaceOffer {
  /** The ranks that are dead, or have lost their device. */
  readonly ranks: string;
  /** The ranks that live. */
  readonly others: string;
  /** The choices of parts. */
  readonly choices: readonly IReplaceChoice[];
  /** Whether a single rank lives, which cannot be compared with another one: all of its variables would be copied. */
  readonly copiesAll: boolean;
  /** The choice that brings most back. */
  readonly best: ReplaceChoice;
}

/** The ranks that are dead, or have lost their device, and the others. */
export function ranksToReplace({ ranks }: Pick<IGroup, 'ranks'>): { ranks: number[]; others: number[] } {
  const isLost = ({ state, process_group }: IGroup['ranks'][number]): boolean =>
    state === 'dead' || process_group === 'lost';
  const numbers = (lost: boolean): number[] => ranks.filter(one => isLost(one) === lost).map(({ rank }) => rank);
  return { ranks: numbers(true), others: numbers(false) };
}

/** What can be chosen; null: no rank is to be replaced. */
export function replaceOffer(
  group: Pick<IGroup, 'ranks'>,
  choices: readonly IReplaceChoice[] = []
): IReplaceOffer | null {
  const { ranks, others } = ranksToReplace(group);
  if (ranks.length === 0) {
    return null;
  }
  return {
    ranks: formatRanks(ranks),
    others: formatRanks(others),
    choices,
    copiesAll: others.length === 1,
    best: choices.find(({ body }) => body)?.id ?? 'cells'
  };
}

/** The body of the request for a choice. */
export function replaceBody({ choices, copiesAll }: IReplaceOffer, choice: ReplaceChoice): IReplaceRequest {
  if (choice === 'copy') {
    return { state: choice, ...(copiesAll ? { others: 'copy' } : {}) };
  }
  return choices.find(({ id }) => id === choice)?.body ?? { state: 'empty' };
}
