/** Chooses the group of a command without one: the current notebook's, the only one, or the one the user picks. */
import { InputDialog } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { getNotebookTarget } from '../../model/targets/target';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';

export class GroupChoice {
  constructor(groups: IDistGroups, tracker: INotebookTracker | null, trans: TranslationBundle) {
    this._groups = groups;
    this._tracker = tracker;
    this._trans = trans;
  }

  /** The group, without asking; null if there is none, or more than one candidate. */
  current(): IGroup | null {
    const model = this._tracker?.currentWidget?.content.model;
    const target = model ? getNotebookTarget(model) : null;
    const own = target ? this._groups.find(target.group) : null;
    const { groups } = this._groups;
    return own ?? (groups.length === 1 ? groups[0] : null);
  }

  /** The group to show where there is room for one; null only if there is none. */
  foremost(): IGroup | null {
    const newest = [...this._groups.groups].sort((a, b) => (b.started_at ?? 0) - (a.started_at ?? 0));
    return this.current() ?? newest.find(group => group.running.length > 0) ?? newest[0] ?? null;
  }

  /** The group in a command's arguments, else the current one, else ask. */
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
