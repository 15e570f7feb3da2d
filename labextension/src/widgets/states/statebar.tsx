/** How many ranks have which state, as a bar with a part for each: in place of a light per rank. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useLayoutEffect, useRef } from 'react';
import type { ExecutionState, IRank, RankState } from '../../services/protocol';
import { stateWord } from './statewords';

export type StateCounts = readonly (readonly [RankState | ExecutionState, number])[];

/** How many of these ranks are in each state; states that need a look first. */
export function countStates(ranks: readonly IRank[]): [RankState, number][] {
  const counts = new Map<RankState, number>();
  for (const { state } of ranks) {
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return ORDER.flatMap(state => (counts.has(state) ? [[state, counts.get(state)!]] : []));
}

const ORDER: readonly RankState[] = ['dead', 'unresponsive', 'busy', 'starting', 'importing', 'joining', 'idle'];

/** "1020 idle, 3 busy". */
export function stateCountWords(counts: StateCounts, trans: TranslationBundle): string {
  return counts.map(([state, count]) => trans.__('%1 %2', count, stateWord(trans, state))).join(', ');
}

/** Draw the bar into an element, which is kept while nothing changes. */
export function fillStateBar(bar: HTMLElement, counts: StateCounts, trans: TranslationBundle): void {
  const words = stateCountWords(counts, trans);
  if (bar.title === words) {
    return;
  }
  bar.className = 'jpd-StateBar';
  bar.title = words;
  bar.setAttribute('role', 'img');
  bar.setAttribute('aria-label', words);
  bar.replaceChildren(
    ...counts.map(([state, count]) => {
      const part = document.createElement('span');
      part.dataset.state = state;
      part.style.flexGrow = String(count);
      return part;
    })
  );
}

export interface IStateBarProps {
  readonly counts: StateCounts;
  readonly trans: TranslationBundle;
}

export function StateBar({ counts, trans }: IStateBarProps): React.ReactElement {
  const bar = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => fillStateBar(bar.current!, counts, trans));
  return <span ref={bar} />;
}
