/** What the colors and marks of the lanes mean, and what is not there. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { TimelineModel } from './model/timeline';
import type { ILine } from './lanes/scales';
import { lineLabel } from './timelinewords';

export interface ILegendProps {
  readonly model: TimelineModel;
  readonly line: ILine;
  readonly trans: TranslationBundle;
}

export function Legend({ model, line, trans }: ILegendProps): React.ReactElement {
  const memory = model.columns.hasDevice ? trans.__('Memory allocated on the device') : trans.__('Resident memory');
  const entries: [string, string, string?][] = [
    ['ok', trans.__('cell')],
    ['running', trans.__('running')],
    ['error', trans.__('failed')],
    [
      'wait',
      trans.__('in a collective'),
      trans.__('As seen every 3 seconds while a cell runs. Two looks at the same call are joined.')
    ],
    ['memory', memory],
    ...(model.steps.cells.length === 0
      ? []
      : [
          [
            'steps',
            trans.__('time of a step'),
            trans.__('Of cells that run for more than four seconds, and have steps: the longest is at the top.')
          ] as [string, string, string]
        ]),
    ...(line === 'none' ? [] : [['line', lineLabel(trans, line)] as [string, string]]),
    ['gap', trans.__('not sampled'), trans.__('Samples are taken while a page shows the memory of ranks.')]
  ];
  const hasDevices = (model.known?.devices.length ?? 0) > 0;
  return (
    <p className="jpd-Timeline-legend">
      {entries.map(([mark, text, title]) => (
        <span key={mark} title={title}>
          <i data-mark={mark} aria-hidden="true" />
          {text}
        </span>
      ))}
      {!hasDevices && <span>{trans.__('CPU ranks have no device: no utilization and no power.')}</span>}
    </p>
  );
}
