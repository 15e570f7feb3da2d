/** Replaces the choice of ranks if cells of this page cannot run on ranks. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';
import type { IErrorBody } from '../../services/protocol';
import { explainError } from '../base/errornote';
import { moveInPicker } from './layout/toolbarkeys';

export class RanksOffNotice extends ReactWidget {
  constructor(
    private readonly _trouble: IErrorBody,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jpd-RankChoice');
    this.addClass('jpd-RanksOff');
    this.node.addEventListener('keydown', moveInPicker);
  }

  dispose(): void {
    this.node.removeEventListener('keydown', moveInPicker);
    super.dispose();
  }

  render(): React.ReactElement {
    const { message, hint } = this._trouble;
    const label = this._trans.__('Ranks unavailable');
    const sentence = `${message} ${hint ?? ''}`.trim();
    const explain = (): void => void explainError(label, this._trouble);
    return (
      <button type="button" role="alert" title={sentence} onClick={explain}>
        {label}
      </button>
    );
  }
}
