/** The panel with the variables of a group's ranks, for the main area. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { variableIcon } from '@jupyterlab/ui-components';
import React from 'react';
import { VariablesModel } from './model/variables';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService, IDistVariableQuestions, IDistVariableSections } from '../../tokens';
import { GroupPanel } from '../../widgets/base/grouppanel';
import { VariablesView } from './variablesview';

export interface IVariablesOptions {
  readonly service: IDistService;
  readonly groups: IDistGroups;
  readonly questions: IDistVariableQuestions;
  readonly sections: IDistVariableSections;
  readonly group: IGroup;
  readonly trans: TranslationBundle;
}

export class VariablesPanel extends GroupPanel<VariablesModel> {
  constructor({ service, groups, questions, sections, group, trans }: IVariablesOptions) {
    super(
      new VariablesModel(service, groups, group.id),
      'variables',
      trans.__('Variables: %1', group.name),
      variableIcon
    );
    this._trans = trans;
    this._questions = questions;
    this._sections = sections;
    this._name = group.name;
    this.addClass('jpd-Variables');
    this.node.addEventListener('keydown', this, true);
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.node.removeEventListener('keydown', this, true);
      super.dispose();
    }
  }

  handleEvent(event: KeyboardEvent): void {
    const { ctrlKey, metaKey, key } = event;
    if ((ctrlKey || metaKey) && key === 'f') {
      event.preventDefault();
      event.stopPropagation();
      this.focus();
    }
  }

  protected render(): React.ReactElement {
    const { model, onReady, _name: name, _questions: questions, _sections: sections, _trans: trans } = this;
    return <VariablesView {...{ model, name, questions, sections, trans, onReady }} />;
  }

  protected takeFocus(): boolean {
    const input = this.node.querySelector('input');
    input?.focus();
    input?.select();
    return input !== null;
  }

  private readonly _name: string;
  private readonly _questions: IDistVariableQuestions;
  private readonly _sections: IDistVariableSections;
  private readonly _trans: TranslationBundle;
}
