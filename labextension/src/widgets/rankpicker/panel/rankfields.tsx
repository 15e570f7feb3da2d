/** The choice of ranks of a group: all, toggles, and a field for an expression. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { formatRanks } from '../../../model/format/ranks';
import type { IGroup } from '../../../services/protocol';
import { notifyError } from '../../base/errornote';
import { MANY_RANKS } from '../../states/rankfinder';
import type { TargetModel } from '../pickermodel';
import { ExpressionField } from './expressionfield';
import { NodeToggles } from './nodetoggles';
import { RankToggles } from './ranktoggles';

/** Ranks per row of the grid. */
const GRID_COLUMNS = 8;

export interface IRankFieldsProps {
  model: TargetModel;
  trans: TranslationBundle;
}

/** Nothing while no group is chosen. */
export function RankFields({ model, trans }: IRankFieldsProps): React.ReactElement | null {
  const { target, group } = model;
  if (!target) {
    return null;
  }
  return (
    <>
      {group && <Toggles model={model} trans={trans} group={group} />}
      <div className="jpd-RankGrid-rest">
        {group && <AllButton model={model} trans={trans} group={group} />}
        <ExpressionField
          value={target.ranks}
          current={() => model.target?.ranks ?? target.ranks}
          group={group}
          trans={trans}
          onEdit={() => model.expressionChoice()}
        />
      </div>
    </>
  );
}

type IGroupProps = IRankFieldsProps & { group: IGroup };

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

/** The chosen ranks. */
export interface IChosenWords {
  /** "8 of 8" or "0-2,4". */
  label: string;
  /** "0-2,4 (4 of 8)". */
  title: string;
}

export function chosenWords({ model, trans }: IRankFieldsProps): IChosenWords {
  const { group, ranks, target } = model;
  if (!group || ranks.length === 0) {
    const label = target?.ranks ?? '';
    return { label, title: label };
  }
  const size = group.world_size;
  const count = trans.__('%1 of %2', ranks.length, size);
  const set = formatRanks(ranks);
  return { label: ranks.length === size ? count : set, title: `${set} (${count})` };
}
