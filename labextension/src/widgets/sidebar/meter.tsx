/** A thin bar: part of a whole, always with the words beside it. */
import React from 'react';

export interface IMeterProps {
  readonly label: string;
  /** Between 0 and 1. */
  readonly value: number;
  readonly text: string;
}

const HIGH = 0.9;

export function Meter({ label, value, text }: IMeterProps): React.ReactElement {
  return (
    <div
      className="jpd-Meter"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(value * 100)}
      aria-valuetext={text}
      data-level={value >= HIGH ? 'high' : 'normal'}
    >
      <div className="jpd-Meter-fill" style={{ width: `${value * 100}%` }} />
    </div>
  );
}
