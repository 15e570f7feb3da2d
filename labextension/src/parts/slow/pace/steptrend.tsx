/** How long the steps of a loop took in the course of the cell, as a small chart. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { formatStepTime } from '../../../model/format/quantities';
import type { IStepTimes } from '../../../services/protocol';
import { stepWords } from './pacewords';

const WIDTH = 240;
const HEIGHT = 36;
const EDGE = 4;

interface IStepTrendProps {
  readonly steps: IStepTimes;
  readonly trans: TranslationBundle;
}

export function StepTrend({ steps, trans }: IStepTrendProps): React.ReactElement {
  const { times, trend } = steps;
  const most = Math.max(...trend);
  return (
    <figure className="jpd-Pace-steps">
      {trend.length > 1 && (
        <div className="jpd-Pace-trend" aria-hidden="true">
          <span>{formatStepTime(most)}</span>
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none">
            <polyline points={pointsOf(times, trend, most)} vectorEffect="non-scaling-stroke" />
          </svg>
          <span>0</span>
        </div>
      )}
      <figcaption>{stepWords(trans, steps)}</figcaption>
    </figure>
  );
}

/** From 0, so that noise looks like noise. */
function pointsOf(times: readonly number[], trend: readonly number[], most: number): string {
  const [first, last] = [times[0], times[times.length - 1]];
  return trend
    .map((seconds, i) => {
      const x = ((times[i] - first) / Math.max(1e-3, last - first)) * WIDTH;
      const y = HEIGHT - EDGE - (seconds / most) * (HEIGHT - 2 * EDGE);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    })
    .join(' ');
}
