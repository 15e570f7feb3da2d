/** A verdict in the page's language. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { capitalized } from '../../model/format/characters';
import { expandRanks, formatRanks } from '../../model/format/ranks';
import type { IVerdict } from '../../services/protocol';
import { rankSetLabel } from '../../widgets/rankoutput/items/itemrow';
import { placeWords, stateOfStack } from './stacks/stackstate';

/** A longer list of ranks is counted in the title. */
const MAX_NAMED = 16;

/** Which ranks wait for which others, and whether that can end. */
export function verdictTitle(trans: TranslationBundle, { reason, waiting, needed }: IVerdict): string {
  const [mine, others] = [labelOf(trans, waiting), needed.length ? labelOf(trans, needed) : ''];
  const titles: Record<IVerdict['reason'], string> = {
    missing: trans.__('Cannot end: %1 called what %2 did not call and, being idle, will not', mine, others),
    dead: trans.__('Cannot end: %1 called what %2 cannot call any more', mine, others),
    order: trans.__('Cannot end: %1 wait for each other in different process groups', mine),
    mismatch: trans.__('Cannot end: %1 wait for each other in calls that do not match', mine),
    shapes: trans.__('Cannot end: the tensors of %1 differ in shape or dtype', mine),
    busy: trans.__('Waiting: %1 called what %2 has not called yet', mine, others),
    still: trans.__('Waiting: nothing has moved on %1', mine),
    cut: trans.__('Waiting: nothing has moved on %1, and their machines do not reach each other', mine)
  };
  return titles[reason];
}

/** The same and what each rank does, in one text. */
export function verdictText(trans: TranslationBundle, verdict: IVerdict): string {
  const parts = [...verdict.waiting, ...verdict.needed].map(
    part => `${rankSetLabel(trans, part.ranks)} ${doing(trans, part)}`
  );
  return `${verdictTitle(trans, verdict)}. ${capitalized(parts.join('; '))}`;
}

/** "waits in barrier, number 1 \u00b7 line 2 of cell [4]" */
export function doing(trans: TranslationBundle, part: IVerdict['waiting'][number]): string {
  return [stateOfStack(trans, part), placeWords(trans, part)].filter(Boolean).join(' \u00b7 ');
}

export function labelOf(trans: TranslationBundle, parts: IVerdict['waiting']): string {
  const ranks = parts.flatMap(part => expandRanks(part.ranks));
  const named = formatRanks(ranks);
  // The lines below name all of them.
  return named.length > MAX_NAMED ? trans.__('%1 ranks', ranks.length) : rankSetLabel(trans, named);
}
