/** The texts for states, shared by the sidebar, the status bar and the panels. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatSeconds } from '../../model/format/quantities';
import { isStarting, newsOf } from '../../model/format/states';
import { inWords } from '../../services/words';
import type { ExecutionState, GroupState, IGroup, INode, IRank, RankSet, RankState } from '../../services/protocol';

export type GroupLight = RankState | 'away';

/** "rank 3" or "ranks 0-2". */
export function rankWords(trans: TranslationBundle, ranks: RankSet): string {
  return /^\d+$/.test(ranks) ? trans.__('rank %1', ranks) : trans.__('ranks %1', ranks);
}

export function stateWord(trans: TranslationBundle, state: RankState | GroupState | ExecutionState): string {
  const words: Record<RankState | GroupState | ExecutionState, string> = {
    starting: trans.__('starting'),
    importing: trans.__('importing'),
    joining: trans.__('joining'),
    idle: trans.__('idle'),
    busy: trans.__('busy'),
    unresponsive: trans.__('not responding'),
    ready: trans.__('ready'),
    degraded: trans.__('degraded'),
    restarting: trans.__('restarting'),
    resizing: trans.__('resizing'),
    parking: trans.__('parking'),
    parked: trans.__('parked'),
    resuming: trans.__('resuming'),
    ending: trans.__('shutting down'),
    queued: trans.__('queued'),
    running: trans.__('running'),
    ok: trans.__('ok'),
    error: trans.__('error'),
    interrupted: trans.__('interrupted'),
    aborted: trans.__('aborted'),
    dead: trans.__('dead'),
    incompatible: trans.__('started by another version'),
    lost: trans.__('lost')
  };
  // A newer server may have more states than this page knows.
  return words[state] ?? state;
}

/** "asks for input", "stopped at line 3"; null if the cell of the rank does not wait for a user. */
export function awaitsUserWords(trans: TranslationBundle, { asks, stopped_at: stop }: IRank): string | null {
  if (stop) {
    return stop.file === null
      ? trans.__('stopped at line %1', stop.line)
      : trans.__('stopped at line %1 of %2', stop.line, stop.file);
  }
  return asks ? trans.__('asks for input') : null;
}

/** Whether the state is temporary: it is shown with its duration. */
export function isPassing(state: RankState): boolean {
  return state !== 'idle' && state !== 'dead';
}

function isComing(state: RankState): boolean {
  return state === 'starting' || state === 'importing' || state === 'joining';
}

/** Whether the rank ignores interrupts, so that killing it is offered. */
export function cannotBeInterrupted({ state, ignores_interrupt }: IRank): boolean {
  return state === 'unresponsive' || ignores_interrupt === true;
}

/** "4 ranks, 2 busy", "8 ranks, starting 3.4 s". */
export function groupSummary(trans: TranslationBundle, group: IGroup, sinceStart: number): string {
  const size = trans._n('%1 rank', '%1 ranks', group.world_size, group.world_size);
  if (isStarting(group)) {
    return trans.__('%1, %2 %3', size, stateWord(trans, group.state), formatSeconds(sinceStart));
  }
  if (group.state !== 'ready' && group.state !== 'degraded') {
    return trans.__('%1, %2', size, passiveWords(trans, group));
  }
  const parts = [size];
  const busy = count(group.ranks, 'busy');
  const asking = group.ranks.filter(rank => rank.asks).length;
  const stopped = group.ranks.filter(rank => rank.stopped_at).length;
  const silent = count(group.ranks, 'unresponsive');
  const dead = count(group.ranks, 'dead');
  if (busy > 0) {
    parts.push(trans.__('%1 busy', busy));
  }
  if (asking > 0) {
    parts.push(trans._n('%1 asks for input', '%1 ask for input', asking, asking));
  }
  if (stopped > 0) {
    parts.push(trans.__('%1 stopped at a breakpoint', stopped));
  }
  if (silent > 0) {
    parts.push(trans._n('%1 not responding', '%1 not responding', silent, silent));
  }
  if (dead > 0) {
    parts.push(trans.__('%1 dead', dead));
  }
  const coming = group.ranks.filter(rank => isComing(rank.state)).length;
  if (coming > 0) {
    parts.push(trans.__('%1 starting', coming));
  }
  if (parts.length === 1) {
    parts.push(trans.__('idle'));
  }
  return parts.join(', ');
}

/** "dead", or the words of a part: "parked, 2.00 GB in host memory". */
function passiveWords(trans: TranslationBundle, group: IGroup): string {
  return newsOf(news => news.stateWords?.(group, trans)) ?? stateWord(trans, group.state);
}

/** The most important state in a group, for its light. */
export function groupLight(group: IGroup): GroupLight {
  const light: Partial<Record<GroupState, GroupLight>> = {
    starting: 'starting',
    restarting: 'starting',
    resizing: 'starting',
    parking: 'starting',
    parked: 'away',
    resuming: 'starting',
    ending: 'unresponsive',
    unresponsive: 'unresponsive',
    incompatible: 'unresponsive',
    dead: 'dead',
    lost: 'dead'
  };
  const fixed = light[group.state];
  if (fixed) {
    return fixed;
  }
  for (const state of ['dead', 'unresponsive', 'busy', 'joining'] as const) {
    if (group.ranks.some(rank => rank.state === state)) {
      return state;
    }
  }
  // Ready, but green only if every rank has answered.
  return group.ranks.every(rank => rank.state === 'idle') ? 'idle' : 'starting';
}

/** What a rank does or why it ended, or what is wrong with a node. */
export function messageOf(
  trans: TranslationBundle,
  { message, message_words: words }: Pick<IRank | INode, 'message' | 'message_words'>
): string {
  return inWords(trans, message ?? '', words);
}

/** Why a rank ended. */
export function exitReason(trans: TranslationBundle, rank: IRank): string {
  const { exit } = rank;
  return (
    (exit && inWords(trans, exit.reason, exit.reason_words)) ||
    (rank.message && messageOf(trans, rank)) ||
    trans.__('It exited for an unknown reason.')
  );
}

function count(ranks: readonly IRank[], state: RankState): number {
  return ranks.filter(rank => rank.state === state).length;
}
