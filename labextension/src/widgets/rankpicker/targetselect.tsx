/** The first part of the picker: the kernel, or which group. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, ReactWidget } from '@jupyterlab/ui-components';
import React, { useId, useRef, useState } from 'react';
import type { IGroup } from '../../services/protocol';
import { useSignal } from '../base/hooks';
import { startLabel } from '../starting/startwords';
import { stateWord } from '../states/statewords';
import type { PickerModel } from './pickermodel';
import { Floating } from './layout/floating';
import { moveInPicker } from './layout/toolbarkeys';

// Names of groups cannot be empty or contain a colon.
const KERNEL = ':kernel';
const START = ':start';
const AGAIN = ':again';
const NEW = ':new-';
const CONSOLE = ':console';
const VARIABLES = ':variables';

interface ITargetSelectProps {
  model: PickerModel;
  trans: TranslationBundle;
  /** Open the form. */
  startGroup(): void;
  /** Start the group that is missing, as the notebook wants it. */
  startAgain(): void;
  /** Start a group with so many ranks. */
  startNew(ranks: number): void;
  /** Open a console on the chosen ranks. */
  openConsole(): void;
  /** Show the variables of the group's ranks. */
  openVariables(): void;
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
  const { model, trans } = props;
  useSignal(model.changed);
  const [isFocused, setFocused] = useState(false);
  const field = useRef<HTMLSelectElement | null>(null);
  const id = useId();
  const { target, group, groups } = model;
  const hint = trans.__('Where cells run: the kernel, or a group of torch.distributed processes, called ranks');
  const selected = target ? (group?.name ?? target.group) : KERNEL;
  // The field has a fixed width and cuts off long names, so the title repeats the selection.
  const shown = !target
    ? trans.__('Kernel')
    : group
      ? groupLabel(trans, group)
      : absent(trans, target.group, model.isStarting);
  const select = (
    <HTMLSelect
      elementRef={element => (field.current = element)}
      className="jpd-TargetSelect-select"
      data-target={target ? 'ranks' : 'kernel'}
      value={selected}
      onChange={event => choose(props, event.target.value)}
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
      {target && !group && <option value={target.group}>{absent(trans, target.group, model.isStarting)}</option>}
      {group && (
        <optgroup label={group.name}>
          <option value={CONSOLE}>{trans.__('New console')}</option>
          <option value={VARIABLES}>{trans.__('Variables')}</option>
        </optgroup>
      )}
      <StartOptions model={model} trans={trans} />
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

/** Carry out what was selected: where cells run, or something to start. */
function choose({ model, startGroup, startAgain, startNew, ...open }: ITargetSelectProps, value: string): void {
  if (value === START) {
    startGroup();
  } else if (value === AGAIN) {
    startAgain();
  } else if (value === CONSOLE) {
    open.openConsole();
  } else if (value === VARIABLES) {
    open.openVariables();
  } else if (value.startsWith(NEW)) {
    startNew(Number(value.slice(NEW.length)));
  } else {
    model.chooseGroup(model.groups.find(({ name }) => name === value) ?? null);
  }
}

/** The groups that can be started: the missing one, new ones by their number of ranks, and any other by the form. */
function StartOptions({ model, trans }: Pick<ITargetSelectProps, 'model' | 'trans'>): React.ReactElement {
  const { missing, sizes } = model;
  return (
    <optgroup label={trans.__('Start a group')}>
      {missing && <option value={AGAIN}>{startLabel(trans, missing.name, missing.read.wanted)}</option>}
      {sizes.map(size => (
        <option key={size} value={`${NEW}${size}`}>
          {trans._n('%1 rank', '%1 ranks', size)}
        </option>
      ))}
      <option value={START}>{trans.__('Start group\u2026')}</option>
    </optgroup>
  );
}

/** A group that the server does not have: it was asked for a moment ago, or it is not running. */
function absent(trans: TranslationBundle, name: string, isStarting: boolean): string {
  return isStarting ? trans.__('%1 (starting\u2026)', name) : trans.__('%1 (not running)', name);
}

function groupLabel(trans: TranslationBundle, { name, state, world_size: size }: IGroup): string {
  return trans._n('%2 (%1 rank, %3)', '%2 (%1 ranks, %3)', size, name, stateWord(trans, state));
}
