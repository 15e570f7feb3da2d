import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { inWords } from '../../services/words';
import { IDistHeaderNotes, IDistService, IDistVariableQuestions } from '../../tokens';
import { ChecksNote } from './checksnote';

/** What is wrong with the training in a cell, in its header. */
const checksPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:checks',
  description: 'Says what is wrong with the training in a cell of ranks.',
  autoStart: true,
  requires: [IDistService, IDistHeaderNotes],
  optional: [IDistVariableQuestions, ISettingRegistry, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    service: IDistService,
    notes: IDistHeaderNotes,
    questions: IDistVariableQuestions | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    let settings: ISettingRegistry.ISettings | undefined;
    const showsChecks = (): boolean => settings?.composite.show !== false;
    void registry
      ?.load(checksPlugin.id)
      .then(loaded => (settings = loaded))
      .catch(reason => console.warn('jupyter_dist: could not read the settings of checks', reason));
    notes.add({
      id: checksPlugin.id,
      rank: 10,
      create: context => new ChecksNote({ ...context, trans, showsChecks }),
      differences: ({ checks = [] }) => checks.map(one => inWords(trans, one.message, one.message_words))
    });
    questions?.add({
      id: checksPlugin.id,
      label: trans.__('Check'),
      isFor: ({ rows }) => rows.some(({ kind }) => kind === 'module'),
      caption: name => trans.__('Check the training of %1 on all ranks', name),
      ask: (group, name) => service.check(group, { name })
    });
  }
};

export default checksPlugin;
