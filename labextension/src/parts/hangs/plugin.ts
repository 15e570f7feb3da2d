import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { showErrorMessage } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { IDistHeaderNotes, IDistService } from '../../tokens';
import { HangNote, IHangActions } from './hangnote';
import { verdictText } from './verdictwords';

/** Why a cell cannot end, in its header and in notifications. */
const hangsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:hangs',
  description: 'Says why a cell of ranks cannot end.',
  autoStart: true,
  requires: [IDistService, IDistHeaderNotes],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    service: IDistService,
    notes: IDistHeaderNotes,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const actions = actionsOf(service, trans);
    notes.add({
      id: hangsPlugin.id,
      rank: 0,
      create: () => new HangNote(trans, actions),
      cannotEnd: ({ verdict }) => (verdict?.kind === 'cannot_end' ? verdictText(trans, verdict) : null)
    });
  }
};

function actionsOf(service: IDistService, trans: TranslationBundle): IHangActions {
  return {
    interrupt: (group, ranks) =>
      void service
        .interrupt(group, { ranks })
        .catch(reason => showErrorMessage(trans.__('Could not interrupt'), reason)),
    extend: (group, execution, ranks) =>
      service
        .extend(group, execution, { ranks })
        .then(() => undefined)
        .catch(reason => showErrorMessage(trans.__('Could not run the cell'), reason)),
    stacks: async group => (await service.stacks(group)).stacks,
    verdicts: group => service.verdicts(group)
  };
}

export default hangsPlugin;
