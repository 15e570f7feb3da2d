import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { inWords } from '../../services/words';
import { IDistGroups } from '../../tokens';
import { GroupNotice, notifyGroup } from '../../widgets/notices/groupnotices';

/** Notifies before an engine ends the nodes of a group, such as Slurm at a time limit, and of jobs that wait in vain. */
const nodeWarningsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:node-warnings',
  description: 'Notifies before the time limit of a group on several machines, and of jobs that cannot start.',
  autoStart: true,
  requires: [IDistGroups],
  optional: [ITranslator],
  activate: (_: JupyterFrontEnd, groups: IDistGroups, translator: ITranslator | null): void => {
    const notices = new NodeWarnings((translator ?? nullTranslator).load('jupyter_dist'));
    groups.changed.connect(() => notices.update(groups.groups));
    notices.update(groups.groups);
  }
};

/** What is shown: a notification per group, until it is closed or the warning does not hold any more. */
export class NodeWarnings {
  constructor(private readonly _trans: TranslationBundle) {}

  update(groups: IDistGroups['groups']): void {
    const wanted = new Map<string, string>();
    for (const { id, name, allocation } of groups) {
      if (allocation?.warning) {
        const warning = inWords(this._trans, allocation.warning, allocation.warning_words);
        wanted.set(id, this._trans.__("Group '%1': %2", name, warning));
      } else if (allocation?.can_start === false) {
        const text = inWords(this._trans, allocation.text, allocation.text_words);
        wanted.set(id, this._trans.__("Group '%1' cannot start: %2", name, text));
      }
    }
    for (const [id, shown] of this._shown) {
      if (wanted.get(id) !== shown.text) {
        shown.notice.end();
        this._shown.delete(id);
      }
    }
    for (const [id, text] of wanted) {
      if (!this._shown.has(id)) {
        this._shown.set(id, { text, notice: notifyGroup(id, text, 'warning', { autoClose: false, holds: true }) });
      }
    }
  }

  private readonly _shown = new Map<string, { text: string; notice: GroupNotice }>();
}

export default nodeWarningsPlugin;
