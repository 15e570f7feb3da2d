/** The panel with the variables of a group's ranks, for the main area. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';
import { VariablesModel } from '../../model/variables/variables';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { ranksIcon } from '../icons';
import { VariablesView } from './view';

export interface IVariablesOptions {
  readonly service: IDistService;
  readonly groups: IDistGroups;
  readonly group: IGroup;
  readonly trans: TranslationBundle;
}

export class VariablesPanel extends ReactWidget {
  constructor({ service, groups, group, trans }: IVariablesOptions) {
    super();
    this._trans = trans;
    this._name = group.name;
    this._model = new VariablesModel(service, groups, group.id);
    this.id = `jupyter-dist-variables-${group.id}`;
    this.addClass('jpd-Variables');
    this.title.label = trans.__('Variables: %1', group.name);
    this.title.icon = ranksIcon;
    this.title.closable = true;
    this.node.tabIndex = -1;
    this.node.addEventListener('keydown', this, true);
    document.addEventListener('visibilitychange', this);
  }

  /** The id of the group. */
  get group(): string {
    return this._model.group;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.node.removeEventListener('keydown', this, true);
      document.removeEventListener('visibilitychange', this);
      this._model.dispose();
      super.dispose();
    }
  }

  handleEvent(event: Event): void {
    if (event.type === 'visibilitychange') {
      this._updateVisible();
      return;
    }
    const { ctrlKey, metaKey, key } = event as KeyboardEvent;
    if ((ctrlKey || metaKey) && key === 'f') {
      event.preventDefault();
      event.stopPropagation();
      this._focusFilter();
    }
  }

  protected render(): React.ReactElement {
    const onReady = (): void => (this._isFocusWanted ? this._focusFilter() : undefined);
    return <VariablesView model={this._model} name={this._name} trans={this._trans} onReady={onReady} />;
  }

  protected onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this._focusFilter();
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._updateVisible();
  }

  protected onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._updateVisible();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._updateVisible();
  }

  protected onAfterDetach(message: Message): void {
    super.onAfterDetach(message);
    this._updateVisible();
  }

  private _updateVisible(): void {
    this._model.setVisible(this.isVisible && document.visibilityState === 'visible');
  }

  /** As soon as the field exists: React draws it a moment after the panel is added. */
  private _focusFilter(): void {
    const input = this.node.querySelector('input');
    this._isFocusWanted = !input;
    input?.focus();
    input?.select();
  }

  private readonly _model: VariablesModel;
  private readonly _name: string;
  private readonly _trans: TranslationBundle;
  private _isFocusWanted = false;
}
