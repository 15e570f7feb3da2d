/** The group in the status bar: "train: 4 ranks, 2 busy". */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { isStarting } from '../../model/format/states';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';
import { useClock, useSignal } from '../../widgets/base/hooks';
import { StateGlyph } from '../../widgets/states/stateglyph';
import { groupLight, groupSummary } from '../../widgets/states/statewords';

export interface IStatusOptions {
  readonly groups: IDistGroups;
  readonly trans: TranslationBundle;
  /** Chooses the group to show. */
  readonly choose: () => IGroup | null;
  readonly open: () => void;
}

export class RanksStatus extends ReactWidget {
  constructor(options: IStatusOptions) {
    super();
    this.addClass('jpd-StatusItem');
    this._options = options;
  }

  protected render(): React.ReactElement {
    return <Status {...this._options} />;
  }

  private readonly _options: IStatusOptions;
}

function Status({ groups, trans, choose, open }: IStatusOptions): React.ReactElement | null {
  const { clock } = groups;
  useSignal(groups.changed);
  const group = choose();
  const starts = group !== null && isStarting(group);
  useClock(clock, starts);
  if (!group) {
    return null;
  }
  const others = groups.groups.length - 1;
  const more = others > 0 ? trans.__(' (+%1)', others) : '';
  const known = groupSummary(trans, group, clock.since(group.started_at));
  const state = groups.connected ? known : trans.__('not connected, last: %1', known);
  const words = `${group.name}: ${state}${more}`;
  const title = trans._n(
    'Ranks: %1 group. Open the sidebar',
    'Ranks: %1 groups. Open the sidebar',
    others + 1,
    others + 1
  );
  return (
    <button type="button" className="jpd-Status" data-connected={groups.connected} title={title} onClick={open}>
      <StateGlyph state={groupLight(group)} />
      <span>{words}</span>
    </button>
  );
}
