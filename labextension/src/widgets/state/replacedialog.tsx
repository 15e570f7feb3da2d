/** The dialog that replaces dead ranks: what their new processes begin with. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { IReplaceOffer, ReplaceChoice } from '../../model/state/replacing';
import type { IGroup } from '../../services/protocol';
import { rankSetLabel } from '../rankoutput/items/itemrow';

export interface IReplaceDialogOptions {
  readonly trans: TranslationBundle;
  readonly group: IGroup;
  readonly offer: IReplaceOffer;
  /** Whether ranks can run the cells that they have missed. */
  readonly canCatchUp: boolean;
}

/** Resolves with what the new processes begin with. */
export class ReplaceDialog extends Dialog<ReplaceChoice> {
  constructor(options: IReplaceDialogOptions) {
    const { trans, group, offer } = options;
    super({
      title: trans.__('Replace %1 of %2', rankSetLabel(trans, offer.ranks), group.name),
      body: new ReplaceBody(options),
      focusNodeSelector: 'input:checked',
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Replace') })]
    });
    this.addClass('jpd-StateDialog');
  }
}

class ReplaceBody extends ReactWidget implements Dialog.IBodyWidget<ReplaceChoice> {
  constructor(private readonly _options: IReplaceDialogOptions) {
    super();
    this.addClass('jpd-StateDialog-body');
    const { best } = _options.offer;
    this._choice = best === 'cells' && !_options.canCatchUp ? 'empty' : best;
  }

  getValue(): ReplaceChoice {
    return this._choice;
  }

  protected render(): React.ReactElement {
    const { trans, offer, canCatchUp } = this._options;
    return (
      <>
        <p>{trans.__('New processes start. The other ranks keep their processes and variables.')}</p>
        <fieldset className="jpd-Choices">
          <legend>{trans.__('The new processes begin with')}</legend>
          {offer.choices.map(({ id, label, hint, body }) => this._option(id, label, hint, body === null))}
          {this._option(
            'copy',
            offer.copiesAll
              ? trans.__('Copies of all variables of %1', rankSetLabel(trans, offer.others))
              : trans.__('Copies of what the other ranks have alike'),
            offer.copiesAll
              ? trans.__('It is the only rank left, so what ranks have alike cannot be compared.')
              : trans.__('Such as models of DDP and their optimizers. What differs between the other ranks is listed.')
          )}
          {canCatchUp &&
            this._option(
              'cells',
              trans.__('Nothing, and run the cells that they have missed'),
              trans.__('A dialog lists these cells once the processes are there.')
            )}
          {this._option('empty', trans.__('Nothing'), '')}
        </fieldset>
      </>
    );
  }

  private _option(choice: ReplaceChoice, label: string, hint: string, disabled = false): React.ReactElement {
    return (
      <label key={choice} className="jpd-Choices-one" aria-disabled={disabled}>
        <input
          type="radio"
          name="jpd-replace"
          disabled={disabled}
          defaultChecked={choice === this._choice}
          onChange={() => {
            this._choice = choice;
          }}
        />
        <span>
          {label}
          {hint && <span className="jpd-StateDialog-quiet">{hint}</span>}
        </span>
      </label>
    );
  }

  private _choice: ReplaceChoice;
}
