/** Describes what a queued cell waits for. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatSeconds } from '../../../model/format/quantities';
import type { Awaited } from '../../../model/executions/waiting';
import type { IExecution, RankState } from '../../../services/protocol';
import { rankSetLabel } from '../items/itemrow';

/** "importing torch (8 s)", "after cell [5] of other.ipynb, running for 12 s", "ranks 2-3 are busy"; `now`: null without the times. */
export function waitWords(
  trans: TranslationBundle,
  awaited: Awaited,
  notebook: string | null,
  now: number | null
): string {
  const lasts = (at: number): string => formatSeconds(Math.max(0, (now ?? at) - at));
  switch (awaited.kind) {
    case 'ranks':
      return now === null
        ? startWords(trans, awaited.state)
        : timedStartWords(trans, awaited.state, lasts(awaited.since));
    case 'resuming':
      return resumeWords(trans, awaited.since, now);
    case 'busy':
      return /^\d+$/.test(awaited.ranks)
        ? trans.__('%1 is busy', rankSetLabel(trans, awaited.ranks))
        : trans.__('%1 are busy', rankSetLabel(trans, awaited.ranks));
    case 'cell': {
      const { execution, more } = awaited;
      const parts = [cellBefore(trans, execution, notebook)];
      if (execution.state === 'running' && execution.started_at && now !== null) {
        parts.push(trans.__('running for %1', lasts(execution.started_at)));
      }
      if (more > 0) {
        parts.push(trans._n('and %1 more', 'and %1 more', more));
      }
      return parts.join(', ');
    }
  }
}

function resumeWords(trans: TranslationBundle, since: number | null, now: number | null): string {
  return now === null || since === null
    ? trans.__('resuming the group')
    : trans.__('resuming the group (%1)', formatSeconds(Math.max(0, now - since)));
}

function startWords(trans: TranslationBundle, state: RankState): string {
  const words: Partial<Record<RankState, string>> = {
    importing: trans.__('importing torch'),
    joining: trans.__('joining the process group')
  };
  return words[state] ?? trans.__('starting the ranks');
}

function timedStartWords(trans: TranslationBundle, state: RankState, time: string): string {
  const words: Partial<Record<RankState, string>> = {
    importing: trans.__('importing torch (%1)', time),
    joining: trans.__('joining the process group (%1)', time)
  };
  return words[state] ?? trans.__('starting the ranks (%1)', time);
}

/** "after cell [5] of other.ipynb"; without the notebook if it is this one. */
function cellBefore(trans: TranslationBundle, execution: IExecution, notebook: string | null): string {
  const { execution_count: count, notebook: path } = execution;
  const file = path && path !== notebook ? path.split('/').pop()! : null;
  if (count !== null) {
    return file ? trans.__('after cell [%1] of %2', count, file) : trans.__('after cell [%1]', count);
  }
  return file ? trans.__('after a cell of %1', file) : trans.__('after another cell');
}
