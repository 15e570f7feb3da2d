/** Which group a command means, when it was not told: the current notebook's, the only one, or the one the user picks. */
import { InputDialog } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { getNotebookTarget } from '../../model/notebooks/target';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';

export class GroupChoice {
  constructor(groups: IDistGroups, tracker: INotebookTracker | null, trans: TranslationBundle) {
    this._groups = groups;
    this._tracker = tracker;
    this._trans = trans;
  }

  /** The group without asking; null when there is none, or none that stands out. */
  current(): IGroup | null {
    const model = this._tracker?.currentWidget?.content.model;
    const target = model ? getNotebookTarget(model) : null;
    const own = target ? this._groups.find(target.group) : null;
    const { groups } = this._groups;
    return own ?? (groups.length === 1 ? groups[0] : null);
  }

  /** The group for a line that has room for one: never none while there is any. */
  foremost(): IGroup | null {
    const newest = [...this._groups.groups].sort((a, b) => (b.started_at ?? 0) - (a.started_at ?? 0));
    return this.current() ?? newest.find(group => group.running.length > 0) ?? newest[0] ?? null;
  }

  /** The group a command's arguments name, else the current one, else ask. */
  async resolve(reference: unknown, title: string): Promise<IGroup | null> {
    if (typeof reference === 'string') {
      return this._groups.find(reference);
    }
    const { groups } = this._groups;
    const current = this.current();
    if (current || groups.length === 0) {
      return current;
    }
    const names = groups.map(group => group.name);
    const answer = await InputDialog.getItem({
      title,
      label: this._trans.__('Group'),
      items: names
    });
    return answer.button.accept && answer.value ? this._groups.find(answer.value) : null;
  }

  private readonly _groups: IDistGroups;
  private readonly _tracker: INotebookTracker | null;
  private readonly _trans: TranslationBundle;
}
