import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { IDistHeaderNotes, IDistService, IDistStepTimes } from '../../tokens';
import { Slowness } from './slowness';

/** Why a cell is slow, and where its time went, in its header; how long its steps took, for the timeline. */
const slowPlugin: JupyterFrontEndPlugin<IDistStepTimes> = {
  id: 'jupyter-dist:slow',
  description: 'Says why a cell of ranks is slow, and where its time goes.',
  autoStart: true,
  requires: [IDistService, IDistHeaderNotes],
  optional: [ITranslator],
  provides: IDistStepTimes,
  activate: (
    _: JupyterFrontEnd,
    service: IDistService,
    notes: IDistHeaderNotes,
    translator: ITranslator | null
  ): IDistStepTimes => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const pace = service.pace.bind(service);
    const verdicts = service.verdicts.bind(service);
    notes.add({ id: slowPlugin.id, rank: 20, create: context => new Slowness({ ...context, trans, pace, verdicts }) });
    return {
      of: async (group, execution) => {
        const { steps } = await pace(group, execution);
        return steps ? steps.trend.map((seconds, i) => ({ at: steps.times[i], seconds })) : [];
      }
    };
  }
};

export default slowPlugin;
