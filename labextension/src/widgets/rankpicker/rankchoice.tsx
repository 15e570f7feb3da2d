/** The second part of the picker: which ranks of the group. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownEmptyThinIcon, ReactWidget } from '@jupyterlab/ui-components';
import React, { useEffect, useRef, useState } from 'react';
import type { IReadWanted } from '../../tokens';
import { formatRanks } from '../../model/format/ranks';
import type { IGroup } from '../../services/protocol';
import { notifyError } from '../base/errornote';
import { useSignal } from '../base/hooks';
import { MANY_RANKS } from '../states/rankfinder';
import { startDetails, startLabel } from '../starting/startwords';
import { ExpressionField } from './expressionfield';
import { Floating } from './layout/floating';
import type { TargetModel } from './pickermodel';
import { NodeToggles } from './nodetoggles';
import { RankToggles } from './ranktoggles';
import type { ChoiceForm } from './layout/toolbarfit';
import { moveInPicker } from './layout/toolbarkeys';

/** Ranks per row of the grid below the button. */
const GRID_COLUMNS = 8;

interface IRankChoiceProps {
  model: TargetModel;
  trans: TranslationBundle;
  /** Start the group that is missing, as the notebook wants it. */
  startAgain(): void;
  /** Go back to the notebook, on Escape. */
  leave(): void;
}

export class RankChoice extends ReactWidget {
  constructor(private _props: IRankChoiceProps) {
    super();
    this.addClass('jpd-RankChoice');
    this.node.addEventListener('keydown', moveInPicker);
  }

  /** How much of it is shown in the toolbar. */
  get form(): ChoiceForm {
    return this._form;
  }
  set form(form: ChoiceForm) {
    this._form = form;
    this.node.dataset.form = form;
    this.update();
  }

  dispose(): void {
    this.node.removeEventListener('keydown', moveInPicker);
    super.dispose();
  }

  render(): React.ReactElement {
    return <RankChoiceBody {...this._props} />;
  }

  private _form: ChoiceForm = 'narrow';
}

function RankChoiceBody(props: IRankChoiceProps): React.ReactElement | null {
  const { model, trans } = props;
  useSignal(model.changed);
  const { target, missing } = model;
  if (!target) {
    return null;
  }
  if (missing) {
    return <StartButton {...props} {...missing} />;
  }
  const { group } = model;
  return (
    <GridButton {...props} group={group} isMarked={model.isOverride}>
      {group && <AllButton {...props} group={group} />}
      {group && <Toggles {...props} group={group} />}
      <div className="jpd-RankGrid-rest">
        <ExpressionField value={target.ranks} group={group} trans={trans} onEdit={() => model.expressionChoice()} />
        {model.hasCellTargets && <OwnButton {...props} />}
      </div>
    </GridButton>
  );
}

/** Starts the group that is missing. */
function StartButton(props: IRankChoiceProps & { name: string; read: IReadWanted }): React.ReactElement {
  const { trans, name, read, startAgain } = props;
  const label = startLabel(trans, name, read.wanted);
  return (
    <button
      type="button"
      className="jpd-RankChoice-start"
      title={[label, ...startDetails(trans, read)].join('\n')}
      aria-label={label}
      onClick={startAgain}
    >
      {label}
    </button>
  );
}

/** Toggles whether the choice is for the selected cells only. */
function OwnButton({ model, trans }: IRankChoiceProps): React.ReactElement {
  return (
    <button
      type="button"
      className="jpd-RankChoice-own"
      aria-pressed={model.isOverride}
      title={trans.__('Choose ranks for the selected cells only')}
      onClick={() => model.setOverride(!model.isOverride)}
    >
      {trans.__('This cell')}
    </button>
  );
}

type IGroupProps = IRankChoiceProps & { group: IGroup };

function AllButton({ model, trans, group }: IGroupProps): React.ReactElement {
  return (
    <button
      type="button"
      className="jpd-RankChoice-all"
      aria-pressed={model.ranks.length === group.world_size}
      title={trans.__('Run cells on all ranks')}
      onClick={() => model.chooseExpression('all')}
    >
      {trans.__('All')}
    </button>
  );
}

function Toggles({ model, trans, group }: IGroupProps): React.ReactElement {
  if (group.world_size > MANY_RANKS && group.nodes?.length) {
    const toggle = (ranks: readonly number[]): void => {
      try {
        model.toggleRanks(ranks);
      } catch (reason) {
        notifyError(reason);
      }
    };
    return <NodeToggles group={group} chosen={model.ranks} trans={trans} onToggle={toggle} />;
  }
  return (
    <RankToggles
      group={group}
      chosen={model.ranks}
      trans={trans}
      columns={GRID_COLUMNS}
      onToggle={rank => model.toggleRank(rank)}
    />
  );
}

/** The chosen ranks, as a short label ("8 of 8", "0-2,4") and as a title. */
function chosenWords({ model, trans }: IRankChoiceProps, group: IGroup | null): { label: string; title: string } {
  const { ranks, target } = model;
  if (!group || ranks.length === 0) {
    const label = target?.ranks ?? '';
    return { label, title: trans.__('Ranks for the next cell: %1', label) };
  }
  const size = group.world_size;
  const count = trans.__('%1 of %2', ranks.length, size);
  const set = formatRanks(ranks);
  const title = trans.__('Ranks for the next cell: %1 (%2)', set, count);
  return { label: ranks.length === size ? count : set, title };
}

interface IGridButtonProps extends IRankChoiceProps {
  group: IGroup | null;
  /** The choice is for the selected cells only. */
  isMarked: boolean;
  children: React.ReactNode;
}

function GridButton(props: IGridButtonProps): React.ReactElement {
  const { trans, group, isMarked, children, leave } = props;
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const close = (): void => {
    const { activeElement } = document;
    if (grid.current?.contains(activeElement)) {
      (activeElement as HTMLElement).blur(); // takes what was typed, before the field is gone
    }
    setOpen(false);
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      setOpen(false);
      leave();
    }
  };
  // The popup is at the end of the page, where Tab does not lead.
  useEffect(() => {
    if (isOpen) {
      grid.current?.querySelector<HTMLElement>('.jpd-RankToggle, input')?.focus();
    }
  }, [isOpen]);
  const { label, title } = chosenWords(props, group);
  const words = isMarked ? trans.__('%1, this cell only', title) : title;
  return (
    <>
      <button
        ref={button}
        type="button"
        className="jpd-RankChoice-grid"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        aria-label={words}
        data-own={isMarked}
        title={words}
        onClick={() => setOpen(!isOpen)}
      >
        <span className="jpd-RankChoice-label">{label}</span>
        <caretDownEmptyThinIcon.react tag="span" width="12px" />
      </button>
      {isOpen && (
        <Floating anchor={button} onClose={close}>
          <div
            ref={grid}
            className="jpd-RankGrid"
            role="dialog"
            aria-label={trans.__('Choose ranks')}
            onKeyDown={onKeyDown}
          >
            {children}
          </div>
        </Floating>
      )}
    </>
  );
}
