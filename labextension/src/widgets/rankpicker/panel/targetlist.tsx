/** Where cells can run: the kernel, and each group. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { moveFocus } from '../layout/roving';
import type { TargetModel } from '../pickermodel';
import { absentWords, groupWords } from '../targetwords';

interface ITargetListProps {
  model: TargetModel;
  trans: TranslationBundle;
}

export function TargetList({ model, trans }: ITargetListProps): React.ReactElement {
  const { target, group, groups, isStarting } = model;
  const isChosen = (name: string | null): boolean => (target ? (group?.name ?? target.group) : null) === name;
  return (
    <div className="jpd-TargetList" role="radiogroup" aria-label={trans.__('Run cells on')} onKeyDown={moveFocus}>
      <Target label={trans.__('Kernel')} isChosen={isChosen(null)} choose={() => model.chooseGroup(null)} />
      {groups.map(one => (
        <Target
          key={one.id}
          label={groupWords(trans, one)}
          isChosen={isChosen(one.name)}
          choose={() => model.chooseGroup(one)}
        />
      ))}
      {target && !group && (
        <Target label={absentWords(trans, target.group, isStarting)} isChosen={true} choose={() => undefined} />
      )}
    </div>
  );
}

interface ITargetProps {
  label: string;
  isChosen: boolean;
  choose(): void;
}

/** Arrow keys only move the focus: a choice of ranks would be lost on the way. */
function Target({ label, isChosen, choose }: ITargetProps): React.ReactElement {
  return (
    <button
      type="button"
      className="jpd-Target"
      role="radio"
      aria-label={label}
      aria-checked={isChosen}
      tabIndex={isChosen ? 0 : -1}
      onClick={choose}
    >
      {label}
    </button>
  );
}
