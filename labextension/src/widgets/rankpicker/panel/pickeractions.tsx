/** What can be done from the panel, apart from the choice of a target: with the cell, with the group, and new groups. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { IGroup } from '../../../services/protocol';
import { startLabel } from '../../starting/startwords';
import { moveFocus } from '../layout/roving';
import type { TargetModel } from '../pickermodel';

/** An action on the chosen group. */
export interface IGroupAction {
  label: string;
  isEnabled(group: IGroup): boolean;
  /** On the group and the chosen ranks, once the dialog is closed; `button` is the control in the toolbar. */
  run(group: IGroup, ranks: string, button: HTMLElement | null): void;
}

/** The ways to start a group for the notebook. */
export interface IStartActions {
  /** Open the form. */
  startGroup(): void;
  /** Start the group that is missing, as the notebook wants it. */
  startAgain(): void;
  /** Start a group with so many ranks. */
  startNew(ranks: number): void;
}

interface IPickerActionsProps {
  model: TargetModel;
  trans: TranslationBundle;
  start: IStartActions;
  actions(): readonly IGroupAction[];
  button: HTMLElement | null;
  /** Close the dialog. */
  close(): void;
}

export function PickerActions(props: IPickerActionsProps): React.ReactElement {
  const { model, trans, start, actions, button, close } = props;
  const { group, missing, sizes } = model;
  const act = (run: () => void) => (): void => {
    close();
    run();
  };
  return (
    <>
      {group && (
        <div
          className="jpd-RankGrid-actions"
          role="group"
          aria-label={trans.__('Actions on %1', group.name)}
          onKeyDown={moveFocus}
        >
          {actions().map(({ label, isEnabled, run }) => (
            <button
              key={label}
              type="button"
              disabled={!isEnabled(group)}
              onClick={act(() => run(group, model.target?.ranks ?? 'all', button))}
            >
              {label}
            </button>
          ))}
        </div>
      )}
      <div
        className="jpd-RankGrid-actions jpd-RankGrid-start"
        role="group"
        aria-label={trans.__('Start a group')}
        onKeyDown={moveFocus}
      >
        <span aria-hidden="true">{trans.__('Start a group')}</span>
        {missing && (
          <button type="button" onClick={act(() => start.startAgain())}>
            {startLabel(trans, missing.name, missing.read.wanted)}
          </button>
        )}
        {sizes.map(size => (
          <button key={size} type="button" onClick={act(() => start.startNew(size))}>
            {trans._n('%1 rank', '%1 ranks', size)}
          </button>
        ))}
        <button type="button" onClick={act(() => start.startGroup())}>
          {trans.__('Start group\u2026')}
        </button>
      </div>
    </>
  );
}
