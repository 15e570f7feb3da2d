/** The line below the lanes: what is at a place, or the scales; screen readers announce it when the user goes to another place. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useMemo } from 'react';
import { formatBytes } from '../../model/format/quantities';
import type { TimelineModel } from './model/timeline';
import type { ITimelinePoint } from './lanes/hands';
import type { ILine, IScales } from './lanes/scales';
import { lineLabel, lineWords, placeWords } from './timelinewords';

interface IReadoutProps {
  readonly model: TimelineModel;
  readonly line: ILine;
  readonly place: ITimelinePoint;
  readonly scales: IScales;
  readonly trans: TranslationBundle;
}

export function Readout({ model, line, place, scales, trans }: IReadoutProps): React.ReactElement {
  const text =
    placeWords(trans, model, line, place) ||
    (model.isLoaded
      ? trans.__(
          'Memory: 0 to %1. %2: 0 to %3.',
          formatBytes(scales.memory),
          lineLabel(trans, line),
          lineWords(line, scales.line)
        )
      : trans.__('Loading the last hour\u2026'));
  // Not with each sample.
  const spoken = useMemo(() => text, [model, model.isLoaded, line, place]);
  return (
    <>
      <p className="jpd-Timeline-readout">{text}</p>
      <p className="jpd-Spoken" role="status">
        {spoken}
      </p>
    </>
  );
}
