/** The panel with the timeline of a group's ranks, for the main area. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { TimelineModel } from '../../model/timeline/timeline';
import type { IExecution, IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService, IDistStepTimes } from '../../tokens';
import { GroupPanel } from '../base/grouppanel';
import { timelineIcon } from '../base/icons';
import { TimelineView } from './timelineview';

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
