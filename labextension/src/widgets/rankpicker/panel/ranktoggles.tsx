/** One toggle per rank, in the color of its state. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useRef, useState } from 'react';
import type { IGroup, IRank } from '../../../services/protocol';
import { hueOf } from '../../states/rankcolor';
import { StateGlyph } from '../../states/stateglyph';
import { stateWord } from '../../states/statewords';

interface IRankTogglesProps {
  group: IGroup;
  chosen: readonly number[];
  trans: TranslationBundle;
  /** Toggles per row. */
  columns: number;
  onToggle(rank: number): void;
}

export function RankToggles(props: IRankTogglesProps): React.ReactElement {
  const { group, chosen, columns, trans, onToggle } = props;
  const { ranks } = group;
  const isChosen = new Set(chosen);
  const [focused, setFocused] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: React.KeyboardEvent): void => {
    const step: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns,
      ArrowDown: columns
    };
    const next = focused + (step[event.key] ?? NaN);
    if (next >= 0 && next < ranks.length) {
      event.preventDefault();
      event.stopPropagation();
      setFocused(next);
      (box.current?.children[next] as HTMLElement)?.focus();
    }
  };
  return (
    <div
      ref={box}
      className="jpd-RankToggles"
      role="group"
      aria-label={trans.__('Ranks')}
      style={{ gridTemplateColumns: `repeat(${columns}, auto)` }}
      onKeyDown={onKeyDown}
    >
      {ranks.map((rank, i) => (
        <RankToggle
          key={rank.rank}
          rank={rank}
          isChosen={isChosen.has(rank.rank)}
          tabIndex={i === focused ? 0 : -1}
          trans={trans}
          onToggle={() => {
            setFocused(i);
            onToggle(rank.rank);
          }}
        />
      ))}
    </div>
  );
}

interface IRankToggleProps {
  rank: IRank;
  isChosen: boolean;
  tabIndex: number;
  trans: TranslationBundle;
  onToggle(): void;
}

function RankToggle(props: IRankToggleProps): React.ReactElement {
  const { rank, isChosen, tabIndex, trans, onToggle } = props;
  const label = trans.__('Rank %1, %2', rank.rank, stateWord(trans, rank.state));
  return (
    <button
      type="button"
      className="jpd-RankToggle"
      data-state={rank.state}
      data-hue={hueOf(rank.rank)}
      aria-pressed={isChosen}
      aria-label={label}
      title={label}
      tabIndex={tabIndex}
      onClick={onToggle}
    >
      <StateGlyph state={rank.state} />
      <span className="jpd-RankToggle-rank">{rank.rank}</span>
    </button>
  );
}
