/** The name and the state of a console's group, in its toolbar. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import { useSignal } from '../../widgets/base/hooks';
import type { TargetModel } from '../../widgets/rankpicker/pickermodel';
import { StateGlyph } from '../../widgets/states/stateglyph';
import { groupLight, stateWord } from '../../widgets/states/statewords';

export class GroupLabel extends ReactWidget {
  constructor(
    private readonly _model: TargetModel,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jpd-Console-group');
  }

  render(): React.ReactElement {
    return <GroupLabelBody model={this._model} trans={this._trans} />;
  }
}

function GroupLabelBody({ model, trans }: { model: TargetModel; trans: TranslationBundle }): React.ReactElement {
  useSignal(model.changed);
  const { group, missing } = model;
  const name = group?.name ?? model.target?.group ?? '';
  const state = missing ? trans.__('not running') : group ? stateWord(trans, group.state) : '';
  return (
    <span role="status" title={trans.__('The group of this console: %1, %2', name, state)}>
      <StateGlyph state={group && !missing ? groupLight(group) : 'dead'} />
      <span className="jpd-Console-name">{name}</span>
      {group?.state === 'ready' && !missing ? null : <span className="jpd-Console-state">{state}</span>}
    </span>
  );
}
