/** The panel with the timeline of a group's ranks, for the main area. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';
import React from 'react';
import { TimelineModel } from './model/timeline';
import type { IExecution, IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService, IDistStepTimes } from '../../tokens';
import { GroupPanel } from '../../widgets/base/grouppanel';
import { TimelineView } from './timelineview';

/** Bands on lanes. */
const timelineIcon = new LabIcon({
  name: 'jupyter-dist:timeline',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <rect x="3" y="4" width="9" height="4" rx="1"/>
    <rect x="15" y="4" width="6" height="4" rx="1"/>
    <rect x="6" y="10" width="12" height="4" rx="1"/>
    <rect x="3" y="16" width="5" height="4" rx="1"/>
    <rect x="11" y="16" width="10" height="4" rx="1"/>
  </g>
</svg>`
});

export interface ITimelineOptions {
  readonly service: IDistService;
  readonly stepTimes: IDistStepTimes | null;
  readonly groups: IDistGroups;
  readonly group: IGroup;
  readonly trans: TranslationBundle;
  openLog(rank: number): void;
  openCell(rank: number, execution: IExecution): void;
}

export class TimelinePanel extends GroupPanel<TimelineModel> {
  constructor(private readonly _options: ITimelineOptions) {
    const { service, groups, group, stepTimes, trans } = _options;
    super(
      new TimelineModel(service, groups, groups.clock, group.id, stepTimes),
      'timeline',
      trans.__('Timeline: %1', group.name),
      timelineIcon
    );
    this.addClass('jpd-Timeline');
  }

  protected render(): React.ReactElement {
    const { group, trans, openLog, openCell } = this._options;
    return (
      <TimelineView
        model={this.model}
        name={group.name}
        trans={trans}
        onOpenLog={openLog}
        onOpenCell={openCell}
        onReady={this.onReady}
      />
    );
  }

  protected takeFocus(): boolean {
    const lanes = this.node.querySelector<HTMLElement>('.jpd-Timeline-host');
    lanes?.focus({ preventScroll: true });
    return lanes !== null;
  }
}
