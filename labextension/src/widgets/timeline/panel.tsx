/** The panel with the timeline of a group's ranks, for the main area. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';
import { Clock } from '../../model/format/clock';
import { TimelineModel } from '../../model/timeline/timeline';
import type { IExecution, IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { ranksIcon } from '../icons';
import { TimelineView } from './view';

export interface ITimelineOptions {
  readonly service: IDistService;
  readonly groups: IDistGroups;
  readonly group: IGroup;
  readonly trans: TranslationBundle;
  openLog(rank: number): void;
  openCell(rank: number, execution: IExecution): void;
}

export class TimelinePanel extends ReactWidget {
  constructor(private readonly _options: ITimelineOptions) {
    super();
    const { service, groups, group, trans } = _options;
    this._model = new TimelineModel(service, groups, this._clock, group.id);
    this.id = `jupyter-dist-timeline-${group.id}`;
    this.addClass('jpd-Timeline');
    this.title.label = trans.__('Timeline: %1', group.name);
    this.title.icon = ranksIcon;
    this.title.closable = true;
    this.node.tabIndex = -1;
    document.addEventListener('visibilitychange', this);
  }

  /** The id of the group. */
  get group(): string {
    return this._model.group;
  }

  dispose(): void {
    if (!this.isDisposed) {
      document.removeEventListener('visibilitychange', this);
      this._model.dispose();
      this._clock.dispose();
      super.dispose();
    }
  }

  handleEvent(): void {
    this._updateVisible();
  }

  protected render(): React.ReactElement {
    const { group, trans, openLog, openCell } = this._options;
    const onReady = (): void => (this._isFocusWanted ? this._focus() : undefined);
    return <TimelineView model={this._model} name={group.name} trans={trans} onOpenLog={openLog} onOpenCell={openCell} onReady={onReady} />;
  }

  protected onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this._focus();
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._updateVisible();
  }

  protected onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._updateVisible();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._updateVisible();
  }

  protected onAfterDetach(message: Message): void {
    super.onAfterDetach(message);
    this._updateVisible();
  }

  private _updateVisible(): void {
    this._model.setVisible(this.isVisible && document.visibilityState === 'visible');
  }

  /** As soon as the lanes exist: React draws them a moment after the panel is added. */
  private _focus(): void {
    const lanes = this.node.querySelector<HTMLElement>('.jpd-Timeline-host');
    this._isFocusWanted = !lanes;
    lanes?.focus({ preventScroll: true });
  }

  private readonly _clock = new Clock();
  private _isFocusWanted = false;
  private readonly _model: TimelineModel;
}
