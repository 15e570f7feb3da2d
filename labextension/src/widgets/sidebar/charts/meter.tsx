/** A thin bar for a fraction, always next to its text. */
import React from 'react';

export interface IMeterProps {
  readonly label: string;
  /** Between 0 and 1. */
  readonly value: number;
  readonly text: string;
  /** Full is not a warning: a busy processor is good. */
  readonly mayBeFull?: boolean;
}

const HIGH = 0.9;

export function Meter({ label, value, text, mayBeFull }: IMeterProps): React.ReactElement {
  return (
    <div
      className="jpd-Meter"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(value * 100)}
      aria-valuetext={text}
      data-level={value >= HIGH && !mayBeFull ? 'high' : 'normal'}
    >
      <div className="jpd-Meter-fill" style={{ width: `${Math.round(value * 200) / 2}%` }} />
    </div>
  );
}
