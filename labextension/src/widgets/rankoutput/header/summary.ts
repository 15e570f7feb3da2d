/** The summary line of a rank output. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { groupedBy } from '../../../model/format/grouped';
import { formatBytes, formatSeconds } from '../../../model/format/quantities';
import { formatRanks } from '../../../model/format/ranks';
import { isLate } from '../../../model/outputs/lateness';
import { stateWord } from '../../states/statewords';
import { rankSetLabel } from '../items/itemrow';
import { knownSeconds, type IShown, type IShownRank } from '../items/shown';

/** At most this many ranks are named in the summary. */
const MAX_NAMED = 4;

/** What a cell waits for. */
export interface IWaitWords {
  readonly words: string;
  /** Whether they are shown in place of the state. */
  readonly isState: boolean;
}

/** Shorter differences between ranks are not worth a number, in seconds. */
const MIN_DIFFERENCE = 0.1;

/**
 * "8 ranks, ok, 1.2 s", "7 ok, rank 3 error, 0.4 s"; `now`: null without times that pass; `isStale`: the state may be out
 * of date; `waiting`: the cause for which the cell waits; `isOwnGroup`: the group is the notebook's, and is not named.
 */
export function summarize(
  trans: TranslationBundle,
  shown: IShown,
  now: number | null,
  isStale: boolean,
  waiting: IWaitWords | null = null,
  isOwnGroup = false
): string {
  const parts = [
    isOwnGroup ? '' : shown.group.name,
    states(trans, shown, waiting?.isState ? waiting.words : null),
    waiting && !waiting.isState ? waiting.words : '',
    lateWords(trans, shown) || duration(shown, now),
    isStale ? trans.__('not connected') : ''
  ];
  return parts.filter(Boolean).join(' \u00b7 ');
}

/** The time from the start of a cell to its end or to now; empty if it does not run. */
function duration({ startedAt, endedAt, state }: IShown, now: number | null): string {
  const until = endedAt || (state === 'running' ? now : null);
  return startedAt && until ? formatSeconds(Math.max(0, until - startedAt)) : '';
}

/** "rank 3 took 2.0 s": which ranks were late in a cell that went well, if they are few; else empty. */
function lateWords(trans: TranslationBundle, { perRank, state }: IShown): string {
  const fastest = Math.min(...knownSeconds(perRank));
  const late = state === 'ok' ? perRank.filter(({ seconds }) => seconds !== null && isLate([fastest, seconds])) : [];
  return late.length > 0 && late.length <= MAX_NAMED
    ? trans.__(
        '%1 took %2',
        rankSetLabel(trans, formatRanks(late.map(({ rank }) => rank))),
        formatSeconds(Math.max(...knownSeconds(late)))
      )
    : '';
}

function states(trans: TranslationBundle, shown: IShown, instead: string | null): string {
  const { perRank } = shown;
  const groups = groupedBy(perRank, ({ status }) => status);
  if (groups.size <= 1) {
    const size = trans._n('%1 rank', '%1 ranks', perRank.length);
    const [state = shown.state] = groups.keys();
    return `${size} \u00b7 ${instead ?? stateWord(trans, state)}`;
  }
  // The most common status is counted, others are listed by rank; where none is, a count beside a rank is no help.
  const sorted = [...groups].sort((a, b) => b[1].length - a[1].length);
  const isCounted = sorted[0][1].length > sorted[1][1].length;
  return sorted
    .map(([state, ranks], i) => {
      const word = state === shown.state && instead ? instead : stateWord(trans, state);
      return (i === 0 && isCounted) || ranks.length > MAX_NAMED
        ? trans.__('%1 %2', ranks.length, word)
        : trans.__('%1 %2', rankSetLabel(trans, formatRanks(ranks.map(({ rank }) => rank))), word);
    })
    .join(', ');
}

/** "Memory: +412 MB not given back on ranks 0-3; +1.2 GB not given back, peak 2.1 GB on rank 4"; empty without any. */
export function memoryHint(trans: TranslationBundle, { perRank }: IShown): string {
  const alike = groupedBy(perRank, one => memoryWords(trans, one));
  alike.delete('');
  const parts = [...alike].map(([words, same]) =>
    trans.__('%1 on %2', words, rankSetLabel(trans, formatRanks(same.map(({ rank }) => rank))))
  );
  return parts.length > 0 ? trans.__('Memory: %1', parts.join('; ')) : '';
}

/** "+412 MB not given back, peak 1.2 GB"; empty if the cell changed little. */
export function memoryWords(trans: TranslationBundle, { memory }: IShownRank): string {
  if (!memory) {
    return '';
  }
  const { added_bytes: added, peak_bytes: peak } = memory;
  const size = formatBytes(Math.abs(added));
  const change = added >= 0 ? trans.__('+%1 not given back', size) : trans.__('-%1 given back', size);
  return peak === null ? change : trans.__('%1, peak %2', change, formatBytes(peak));
}

/** Whether ranks took different times: a fifth of the longest and 0.1 s, or a second. */
export function timesDiffer(ranks: readonly IShownRank[]): boolean {
  const known = knownSeconds(ranks);
  const longest = Math.max(...known);
  const range = longest - Math.min(...known);
  return range >= 1 || (range >= MIN_DIFFERENCE && range >= longest / 5);
}

/** The time a rank took, or has taken so far; empty if it has not started. */
export function rankTime({ status, seconds }: IShownRank, startedAt: number | null, now: number): string {
  if (seconds !== null) {
    return formatSeconds(seconds);
  }
  return status === 'running' && startedAt ? formatSeconds(Math.max(0, now - startedAt)) : '';
}
