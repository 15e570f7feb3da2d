import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { FINAL_STATES } from '../../services/protocol';
import { IDistOutputActions, IDistService, IRanksOutput } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { saveUrl } from '../../widgets/base/savefile';

/** Of the output with the times (jupyter_dist/parts/profile/models.py). */
const PROFILE_MIME = 'application/vnd.jupyter-dist.profile+json';

/** The trace of a cell that ran under torch's profiler: a button above its output. */
const profilesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:profiles',
  description: 'Downloads the merged trace of a profiled cell.',
  autoStart: true,
  requires: [IDistService, IDistOutputActions],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    service: IDistService,
    actions: IDistOutputActions,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    actions.add({
      id: 'jupyter-dist:download-trace',
      label: trans.__('Download trace'),
      isVisible: output => output.trusted && isProfile(output),
      execute: ({ execution, group }) => {
        service
          .download(group.id, service.traceFileUrl(group.id, execution))
          .then(({ url, release }) => saveUrl(url, `${group.name}-${execution}-trace.json`, release))
          .catch(notifyError);
      }
    });
  }
};

function isProfile({ items, state }: IRanksOutput): boolean {
  // The profile is a separate output, after all others.
  return FINAL_STATES.has(state) && items.slice(-MOST_LAST).some(({ output }) => PROFILE_MIME in dataOf(output));
}

/** Ranks that wrote different numbers of lines may have later rows. */
const MOST_LAST = 64;

function dataOf(output: { [name: string]: unknown } | undefined): object {
  return typeof output?.data === 'object' && output.data !== null ? output.data : {};
}

export default profilesPlugin;
