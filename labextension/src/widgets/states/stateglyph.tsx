/** A light that shows a state by shape and color, never by color alone. */
import React from 'react';
import type { GroupLight } from './statewords';

const SHAPES: Record<GroupLight, React.ReactElement> = {
  starting: <circle cx="6" cy="6" r="4" fill="none" strokeDasharray="2 2.2" />,
  importing: <circle cx="6" cy="6" r="4" fill="none" strokeDasharray="4 2.28" />,
  joining: <circle cx="6" cy="6" r="4" fill="none" />,
  idle: <circle cx="6" cy="6" r="4.5" stroke="none" />,
  busy: (
    <>
      <circle cx="6" cy="6" r="4.2" fill="none" />
      <circle cx="6" cy="6" r="2" stroke="none" />
    </>
  ),
  unresponsive: <path d="M6 1.2 L11 10.4 L1 10.4 Z" stroke="none" />,
  away: <path d="M3.5 2 L3.5 10 M8.5 2 L8.5 10" fill="none" />,
  dead: <path d="M2.4 2.4 L9.6 9.6 M9.6 2.4 L2.4 9.6" fill="none" />
};

export interface IStateGlyphProps {
  readonly state: GroupLight;
  /** For screen readers; omitted if the text is next to it. */
  readonly label?: string;
}

export function StateGlyph({ state, label }: IStateGlyphProps): React.ReactElement {
  return (
    <svg
      className="jpd-StateGlyph"
      data-state={state}
      viewBox="0 0 12 12"
      role={label ? 'img' : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : true}
    >
      {SHAPES[state] ?? SHAPES.starting}
    </svg>
  );
}
