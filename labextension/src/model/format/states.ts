/** The meaning of a group's states, and more words of parts for a group. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IGroup } from '../../services/protocol';

/** Whether its ranks start, or join in another number. */
export function isStarting(group: IGroup): boolean {
  return group.state === 'starting' || group.state === 'restarting' || group.state === 'resizing';
}

/** Whether its ranks live, and their tensors cannot be used: they are away, or on their way there or back. */
export function isAway(group: IGroup): boolean {
  return group.state === 'parking' || group.state === 'parked' || group.state === 'resuming';
}

/** Whether ranks can be asked. */
export type Phase = 'idle' | 'busy' | 'starting' | 'away' | 'gone';

/** What its ranks are doing, as far as it matters for questions to them. */
export function phaseOf(group: IGroup | null): Phase {
  if (!group || group.state === 'dead' || group.state === 'lost' || group.state === 'ending') {
    return 'gone';
  }
  if (isStarting(group)) {
    return 'starting';
  }
  if (isAway(group)) {
    return 'away';
  }
  return group.running.length > 0 || group.ranks.some(({ state }) => state === 'busy') ? 'busy' : 'idle';
}

export interface IGroupNews {
  /** Its state in more words than the state's own; null: there are none. */
  stateWords?(group: IGroup, trans: TranslationBundle): string | null;
  /** Sentences below its note. */
  lines?(group: IGroup): readonly string[];
  /** Since when its tensors return to the devices, in seconds since the epoch; null: they do not. */
  returnsSince?(group: IGroup): number | null;
}

const news: IGroupNews[] = [];

/** Add the words of a part; plugins add theirs. */
export function addGroupNews(one: IGroupNews): void {
  news.push(one);
}

/** The first answer that is not null. */
export function newsOf<T>(ask: (one: IGroupNews) => T | null | undefined): T | null {
  return news.map(ask).find(found => found !== null && found !== undefined) ?? null;
}

/** The sentences of all parts. */
export function linesOf(group: IGroup): string[] {
  return news.flatMap(one => one.lines?.(group) ?? []);
}
