/** The second part of the picker: which ranks of the group. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React, { useRef, useState } from 'react';
import type { IGroup } from '../../services/protocol';
import { useSignal } from '../hooks';
import { ExpressionField } from './expressionfield';
import { Floating } from './floating';
import type { PickerModel } from './pickermodel';
import { RankToggles } from './ranktoggles';
import { moveInPicker } from './toolbarkeys';

/** Up to this many ranks stand in the toolbar; more are in a grid below it. */
const MAX_INLINE = 16;
const GRID_COLUMNS = 8;

interface IRankChoiceProps {
  model: PickerModel;
  trans: TranslationBundle;
}

export class RankChoice extends ReactWidget {
  constructor(private _props: IRankChoiceProps) {
    super();
    this.addClass('jpd-RankChoice');
    this.node.addEventListener('keydown', moveInPicker);
  }

  dispose(): void {
    this.node.removeEventListener('keydown', moveInPicker);
    super.dispose();
  }

  render(): React.ReactElement {
    return <RankChoiceBody {...this._props} />;
  }
}

function RankChoiceBody(props: IRankChoiceProps): React.ReactElement | null {
  const { model, trans } = props;
  useSignal(model.changed);
  const { target, group, isOverride } = model;
  if (!target) {
    return null;
  }
  return (
    <>
      {group && <Chips {...props} group={group} />}
      <ExpressionField
        value={target.ranks}
        worldSize={group?.world_size ?? null}
        trans={trans}
        onCommit={expression => model.chooseExpression(expression)}
      />
      <button
        type="button"
        className="jpd-RankChoice-own"
        aria-pressed={isOverride}
        title={trans.__('Choose for the selected cells only')}
        onClick={() => model.setOverride(!isOverride)}
      >
        {trans.__('This cell')}
      </button>
    </>
  );
}

type IChipsProps = IRankChoiceProps & { group: IGroup };

function Chips({ model, trans, group }: IChipsProps): React.ReactElement {
  const chosen = model.ranks;
  const size = group.world_size;
  const isAll = chosen.length === size;
  const toggles = (
    <RankToggles
      group={group}
      chosen={chosen}
      trans={trans}
      columns={size > MAX_INLINE ? GRID_COLUMNS : undefined}
      onToggle={rank => model.toggleRank(rank)}
    />
  );
  const all = (
    <button
      type="button"
      className="jpd-RankChoice-all"
      aria-pressed={isAll}
      title={trans.__('Run cells on all ranks')}
      onClick={() => model.chooseExpression('all')}
    >
      {trans.__('All')}
    </button>
  );
  if (size <= MAX_INLINE) {
    return (
      <>
        {all}
        {toggles}
      </>
    );
  }
  const label = trans.__('%1 of %2', chosen.length, size);
  return (
    <>
      {all}
      <GridButton label={label} trans={trans}>
        {toggles}
      </GridButton>
    </>
  );
}

interface IGridButtonProps {
  label: string;
  trans: TranslationBundle;
  children: React.ReactNode;
}

function GridButton(props: IGridButtonProps): React.ReactElement {
  const { label, trans, children } = props;
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className="jpd-RankChoice-grid"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        title={trans.__('Choose ranks')}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
      </button>
      {isOpen && (
        <Floating anchor={button} onClose={close}>
          <div
            className="jpd-RankGrid"
            role="dialog"
            aria-label={trans.__('Choose ranks')}
          >
            {children}
          </div>
        </Floating>
      )}
    </>
  );
}
