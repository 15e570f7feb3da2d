/** The first part of the picker: the kernel, or which group. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, ReactWidget } from '@jupyterlab/ui-components';
import React, { useId, useRef, useState } from 'react';
import type { IGroup } from '../../services/protocol';
import { useSignal } from '../hooks';
import { stateWord } from '../statewords';
import type { PickerModel } from './pickermodel';
import { Floating } from './layout/floating';
import { moveInPicker } from './layout/toolbarkeys';

// Names of groups cannot be empty or contain a colon.
const KERNEL = ':kernel';
const START = ':start';

interface ITargetSelectProps {
  model: PickerModel;
  trans: TranslationBundle;
  startGroup(): void;
}

export class TargetSelect extends ReactWidget {
  constructor(private _props: ITargetSelectProps) {
    super();
    this.addClass('jpd-TargetSelect');
    this.node.addEventListener('keydown', moveInPicker);
  }

  dispose(): void {
    this.node.removeEventListener('keydown', moveInPicker);
    super.dispose();
  }

  render(): React.ReactElement {
    return <TargetSelectBody {...this._props} />;
  }
}

function TargetSelectBody(props: ITargetSelectProps): React.ReactElement {
  const { model, trans, startGroup } = props;
  useSignal(model.changed);
  const [isFocused, setFocused] = useState(false);
  const field = useRef<HTMLSelectElement | null>(null);
  const id = useId();
  const { target, group, groups } = model;
  const hint = trans.__('Where cells run: the kernel, or a group of torch.distributed processes, called ranks');
  const selected = target ? (group?.name ?? target.group) : KERNEL;
  // The field has a fixed width and cuts off long names, so the title repeats the selection.
  const shown = !target ? trans.__('Kernel') : group ? groupLabel(trans, group) : trans.__('%1 (not running)', target.group);
  const onChange = (event: React.ChangeEvent<HTMLSelectElement>): void => {
    const { value } = event.target;
    if (value === START) {
      startGroup();
    } else {
      model.chooseGroup(groups.find(({ name }) => name === value) ?? null);
    }
  };
  const select = (
    <HTMLSelect
      elementRef={element => (field.current = element)}
      className="jpd-TargetSelect-select"
      data-target={target ? 'ranks' : 'kernel'}
      value={selected}
      onChange={onChange}
      onFocus={event => setFocused(event.target.matches(':focus-visible'))}
      onBlur={() => setFocused(false)}
      aria-label={trans.__('Run cells on')}
      aria-describedby={isFocused ? id : undefined}
      title={`${shown}\n${hint}`}
    >
      <option value={KERNEL}>{trans.__('Kernel')}</option>
      {groups.map(one => (
        <option key={one.id} value={one.name}>
          {groupLabel(trans, one)}
        </option>
      ))}
      {target && !group && (
        <option value={target.group}>
          {trans.__('%1 (not running)', target.group)}
        </option>
      )}
      <option value={START}>{trans.__('Start group\u2026')}</option>
    </HTMLSelect>
  );
  return (
    <>
      {select}
      {isFocused && (
        <Floating anchor={field}>
          <div id={id} className="jpd-Hint">
            {hint}
          </div>
        </Floating>
      )}
    </>
  );
}

function groupLabel(trans: TranslationBundle, { name, state, world_size: size }: IGroup): string {
  return trans._n('%2 (%1 rank, %3)', '%2 (%1 ranks, %3)', size, name, stateWord(trans, state));
}
