/** Which ranks of a group, for consoles; and the button that starts a missing group, also for notebooks. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import type { IReadWanted } from '../../tokens';
import { useSignal } from '../base/hooks';
import { startDetails, startLabel } from '../starting/startwords';
import { PopupButton } from './layout/popupbutton';
import type { ChoiceForm } from './layout/toolbarfit';
import { moveInPicker } from './layout/toolbarkeys';
import { chosenWords, RankFields } from './panel/rankfields';
import type { TargetModel } from './pickermodel';

interface IRankChoiceProps {
  model: TargetModel;
  trans: TranslationBundle;
  /** Start the group that is missing, as the notebook wants it. */
  startAgain(): void;
  /** Go back to the notebook, on Escape. */
  leave(): void;
}

const FIRST = ['.jpd-RankToggle[tabindex="0"]', 'input'];

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
  const { model, trans, leave } = props;
  useSignal(model.changed);
  const { target, missing } = model;
  if (!target) {
    return null;
  }
  if (missing) {
    return <StartButton {...props} {...missing} />;
  }
  const { label, title } = chosenWords(props);
  const words = trans.__('Ranks for the next cell: %1', title);
  return (
    <PopupButton
      className="jpd-RankChoice-grid"
      face={<span className="jpd-RankChoice-label">{label}</span>}
      label={words}
      title={words}
      dialogLabel={trans.__('Choose ranks')}
      first={FIRST}
      leave={leave}
    >
      {() => <RankFields model={model} trans={trans} />}
    </PopupButton>
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
