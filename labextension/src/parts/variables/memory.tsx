/** The lines about memory above the table: how much ranks hold, and what holds it beside variables. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { memo, useMemo } from 'react';
import { heldAlike } from './model/held';
import type { IHeldMemory } from '../../services/protocol';
import { freeWords, heldWords, otherWords } from './variablewords';

/** Sets of ranks that hold differently; more would leave no room for the table. */
const MAX_SETS = 4;

interface IMemoryProps {
  readonly memory: readonly IHeldMemory[];
  readonly trans: TranslationBundle;
}

export const MemoryLines = memo(({ memory, trans }: IMemoryProps): React.ReactElement | null => {
  const sets = useMemo(() => heldAlike(memory), [memory]);
  if (sets.length === 0) {
    return null;
  }
  const rest = sets.length - MAX_SETS;
  return (
    <ul className="jpd-Variables-memory" aria-label={trans.__('Memory')}>
      {sets.slice(0, MAX_SETS).map(one => (
        <li key={one.ranks}>
          {heldWords(trans, one)}
          {one.others.length > 0 && (
            <span className="jpd-Variables-others">
              {otherWords(trans, one)}
              {freeWords(trans, one).map(({ code, sentence }) => {
                const [before, after] = sentence.split(code);
                return (
                  <React.Fragment key={code}>
                    {' '}
                    {before}
                    <code>{code}</code>
                    {after}
                  </React.Fragment>
                );
              })}
            </span>
          )}
        </li>
      ))}
      {rest > 0 && <li>{trans._n('%1 more set of ranks holds less.', '%1 more sets of ranks hold less.', rest)}</li>}
    </ul>
  );
});
