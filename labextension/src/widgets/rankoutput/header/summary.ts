/** The summary line of a rank output. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatSeconds } from '../../../model/format/quantities';
import { formatRanks } from '../../../model/format/ranks';
import type { ExecutionState } from '../../../services/protocol';
import { stateWord } from '../../statewords';
import { rankSetLabel } from '../itemrow';
import type { IShown, IShownRank } from '../shown';

/** At most this many ranks are named in the summary. */
const MAX_NAMED = 4;

/** "8 ranks, ok, 1.2 s", "7 ok, rank 3 error, 0.4 s"; `isStale`: it may be out of date; `waiting`: what it waits for. */
export function summarize(
  trans: TranslationBundle,
  shown: IShown,
  now: number,
  isStale: boolean,
  waiting: string | null = null
): string {
  const parts = [states(trans, shown)];
  if (waiting) {
    parts.push(waiting);
  }
  const { startedAt, endedAt } = shown;
  if (startedAt && (endedAt || shown.state === 'running')) {
    parts.push(formatSeconds(Math.max(0, (endedAt ?? now) - startedAt)));
  }
  if (isStale) {
    parts.push(trans.__('not connected to the server; last known state'));
  }
  if (shown.group.name) {
    parts.unshift(shown.group.name);
  }
  return parts.join(' \u00b7 ');
}

function states(trans: TranslationBundle, shown: IShown): string {
  const { perRank } = shown;
  const groups = new Map<ExecutionState, number[]>();
  for (const { rank, status } of perRank) {
    groups.set(status, [...(groups.get(status) ?? []), rank]);
  }
  if (groups.size <= 1) {
    const size = trans._n('%1 rank', '%1 ranks', perRank.length);
    const [state = shown.state] = groups.keys();
    return `${size} \u00b7 ${stateWord(trans, state)}`;
  }
  // The most common status is counted, others are listed by rank.
  const sorted = [...groups].sort((a, b) => b[1].length - a[1].length);
  return sorted
    .map(([state, ranks], i) => {
      const word = stateWord(trans, state);
      return i === 0 || ranks.length > MAX_NAMED
        ? trans.__('%1 %2', ranks.length, word)
        : trans.__('%1 %2', rankSetLabel(trans, formatRanks(ranks)), word);
    })
    .join(', ');
}

/** The time a rank took, or has taken so far; empty if it has not started. */
export function rankTime(
  { status, seconds }: IShownRank,
  startedAt: number | null,
  now: number
): string {
  if (seconds !== null) {
    return formatSeconds(seconds);
  }
  return status === 'running' && startedAt
    ? formatSeconds(Math.max(0, now - startedAt))
    : '';
}
