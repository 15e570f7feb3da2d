/** Where cells of a notebook run, as one control in its toolbar: "train · 4 of 4" opens the targets, the ranks and actions. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import { useSignal } from '../base/hooks';
import { StateGlyph } from '../states/stateglyph';
import { groupLight } from '../states/statewords';
import { PopupButton } from './layout/popupbutton';
import { moveInPicker } from './layout/toolbarkeys';
import { IGroupAction, IStartActions, PickerActions } from './panel/pickeractions';
import { chosenWords, RankFields } from './panel/rankfields';
import { TargetList } from './panel/targetlist';
import type { TargetModel } from './pickermodel';
import { absentWords, groupWords, targetHint } from './targetwords';

interface IRankPickerProps {
  model: TargetModel;
  trans: TranslationBundle;
  start: IStartActions;
  /** What can be done with the chosen group. */
  actions(): readonly IGroupAction[];
  /** Go back to the notebook, on Escape. */
  leave(): void;
}

/** What gets the focus when the panel opens: the choice of ranks if there is one, else the choice of a target. */
const FIRST = ['.jpd-RankToggle[tabindex="0"]', '.jpd-NodeToggles-search', '.jpd-Target[tabindex="0"]'];

export class RankPicker extends ReactWidget {
  constructor(private _props: IRankPickerProps) {
    super();
    this.addClass('jpd-RankPicker');
    this.node.addEventListener('keydown', moveInPicker);
  }

  dispose(): void {
    this.node.removeEventListener('keydown', moveInPicker);
    super.dispose();
  }

  render(): React.ReactElement {
    return <RankPickerBody {...this._props} />;
  }
}

function RankPickerBody(props: IRankPickerProps): React.ReactElement {
  const { model, trans, start, actions, leave } = props;
  useSignal(model.changed);
  const { place, ranks, label, title } = faceWords(model, trans);
  const { group, isOverride } = model;
  const hint = targetHint(trans);
  const own = (words: string): string => (isOverride ? trans.__('%1, this cell only', words) : words);
  const isQuiet = !group || group.state === 'ready';
  const face = (
    <>
      {!isQuiet && <StateGlyph state={groupLight(group)} />}
      <span className="jpd-RankPicker-place">{place}</span>
      {ranks && <span className="jpd-RankPicker-ranks">{` \u00b7 ${ranks}`}</span>}
    </>
  );
  return (
    <PopupButton
      className="jpd-RankPicker-button"
      face={face}
      label={own(label)}
      title={`${own(title)}\n${hint}`}
      hint={hint}
      data={{ 'data-target': model.target ? 'ranks' : 'kernel', 'data-own': String(isOverride) }}
      dialogLabel={trans.__('Where cells run')}
      first={FIRST}
      leave={leave}
    >
      {(close, button) => (
        <>
          <TargetList model={model} trans={trans} />
          <RankFields model={model} trans={trans} />
          {model.hasCellTargets && <OwnButton model={model} trans={trans} />}
          <PickerActions {...{ model, trans, start, actions, button, close }} />
        </>
      )}
    </PopupButton>
  );
}

interface IFaceWords {
  /** The target. */
  place: string;
  /** The chosen ranks; empty if there are none. */
  ranks: string;
  /** For screen readers. */
  label: string;
  /** For the tooltip. */
  title: string;
}

function faceWords(model: TargetModel, trans: TranslationBundle): IFaceWords {
  const { target, group } = model;
  if (!target || !group) {
    const place = target ? absentWords(trans, target.group, model.isStarting) : trans.__('Kernel');
    const label = trans.__('Run cells on: %1', place);
    return { place, ranks: '', label, title: label };
  }
  const chosen = chosenWords({ model, trans });
  const words = (place: string): string => trans.__('Run cells on: %1, ranks %2', place, chosen.title);
  const full = groupWords(trans, group);
  return {
    place: group.name,
    ranks: chosen.label,
    label: words(group.state === 'ready' ? group.name : full),
    title: words(full)
  };
}

/** Toggles whether the choice is for the selected cells only. */
function OwnButton({ model, trans }: Pick<IRankPickerProps, 'model' | 'trans'>): React.ReactElement {
  return (
    <button
      type="button"
      className="jpd-RankChoice-own"
      aria-pressed={model.isOverride}
      title={trans.__('Choose ranks for the selected cells only')}
      onClick={() => model.setOverride(!model.isOverride)}
    >
      {trans.__('This cell only')}
    </button>
  );
}
