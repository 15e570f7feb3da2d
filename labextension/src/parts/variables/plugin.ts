import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { Contributions } from '../../model/contributions';
import {
  CommandIDs,
  IDistGroups,
  IDistService,
  IDistVariableQuestions,
  IDistVariableSections,
  IVariableQuestion,
  IVariableSection
} from '../../tokens';
import rulerPlugin from './ruler/plugin';
import type { VariablesPanel } from './variablespanel';
import { addPanelCommand } from '../../plugins/panels/openpanel';

/** What is above the table of the panel. */
const variableSectionsPlugin: JupyterFrontEndPlugin<IDistVariableSections> = {
  id: 'jupyter-dist:variable-sections',
  description: 'The sections of the panel of variables.',
  autoStart: true,
  provides: IDistVariableSections,
  activate: (): IDistVariableSections => new Contributions<IVariableSection>()
};

/** The panel with the variables of ranks. */
const variablesPlugin: JupyterFrontEndPlugin<IDistVariableQuestions> = {
  id: 'jupyter-dist:variables',
  description: 'The variables of ranks, and in what they differ.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistVariableSections],
  provides: IDistVariableQuestions,
  optional: [INotebookTracker, ILayoutRestorer, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    sections: IDistVariableSections,
    notebooks: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): IDistVariableQuestions => {
    const questions = new Contributions<IVariableQuestion>();
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const create = async (group: IGroup): Promise<VariablesPanel> => {
      const part = await loaded(import(/* webpackChunkName: "variables" */ './variablespanel'));
      return new part.VariablesPanel({ service, groups, questions, sections, group, trans });
    };
    addPanelCommand(
      { app, groups, notebooks, restorer, palette, trans },
      {
        command: CommandIDs.openVariables,
        label: trans.__('Show Variables of Ranks'),
        brief: trans.__('Variables'),
        namespace: 'jupyter-dist-variables',
        rank: 10,
        create
      }
    );
    return questions;
  }
};

export default [variableSectionsPlugin, variablesPlugin, rulerPlugin];
