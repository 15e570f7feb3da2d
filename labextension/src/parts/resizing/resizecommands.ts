/** Changes the number of ranks of a group, after a dialog. Loaded when it is first used. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { DistError } from '../../services/errors';
import type { IGroup, IResize } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { notifyError, notifyFailure } from '../../widgets/base/errornote';
import { GroupNotice, notifyGroup } from '../../widgets/notices/groupnotices';
import { differAnswer, DifferDialog, ResizeDialog } from './resizedialog';
import { changeEnded } from '../../model/state/groupchanges';

const SHORT_MS = 8000;
/** A shorter one is not worth a notification. */
const QUICK_MS = 1000;
/** At most so many names are listed in a notification. */
const MAX_NAMES = 8;

export class ResizeCommands {
  constructor(
    private readonly _service: IDistService,
    private readonly _groups: IDistGroups,
    private readonly _trans: TranslationBundle
  ) {}

  /** Resize a group; without a number of ranks, ask for it. */
  async resize(group: IGroup, numRanks: number | null): Promise<void> {
    const wanted = numRanks ?? (await this._ask(group));
    if (wanted === null) {
      return;
    }
    const first = await this._try(group, wanted, 'refuse');
    if (first?.error?.code !== 'ranks_differ') {
      this._show(group, wanted, first);
      return;
    }
    const { button } = await new DifferDialog(this._trans, group, first.differ, wanted > group.world_size).launch();
    const others = differAnswer(button);
    if (others) {
      this._show(group, wanted, await this._try(group, wanted, others));
    }
  }

  private async _ask(group: IGroup): Promise<number | null> {
    const { button, value } = await new ResizeDialog(this._trans, group).launch();
    return button.accept && value !== null && Number.isInteger(value) && value !== group.world_size ? value : null;
  }

  /** Ask the server, and wait for the end; null: the group is gone. */
  private async _try(group: IGroup, wanted: number, others: 'refuse' | 'keep' | 'copy'): Promise<IResize | null> {
    const message = this._trans.__('Resizing %1 to %2 ranks', group.name, wanted);
    let notice: GroupNotice | null = null;
    const show = (): GroupNotice => notifyGroup(group.id, message, 'in-progress', { autoClose: false, holds: true });
    const timer = setTimeout(() => (notice = show()), QUICK_MS);
    try {
      const { resized } = await this._service.resize(group.id, { num_ranks: wanted, others });
      return await changeEnded(this._groups, group, resized?.at ?? 0, ({ resized }) => resized);
    } finally {
      clearTimeout(timer);
      // In a callback, which TypeScript does not follow.
      (notice as GroupNotice | null)?.end();
    }
  }

  private _show(group: IGroup, wanted: number, resized: IResize | null): void {
    const { _trans: trans } = this;
    if (!resized) {
      notifyError(new Error(trans.__('%1 has ended, and was not resized.', group.name)));
      return;
    }
    if (resized.error) {
      notifyFailure(new DistError(resized.error), group.id);
      return;
    }
    const { again, copied, resharded } = resized;
    const lines = [
      trans._n('%2 has %1 rank now.', '%2 has %1 ranks now.', wanted, group.name),
      copied.length > 0 ? trans.__('Copied to new ranks: %1.', listed(trans, copied)) : '',
      resharded.length > 0 ? trans.__('Divided among the ranks anew: %1.', listed(trans, resharded)) : '',
      ...again
    ];
    const isDone = again.length === 0;
    notifyGroup(group.id, lines.filter(Boolean).join(' '), isDone ? 'success' : 'warning', {
      autoClose: isDone ? SHORT_MS : false
    });
  }
}

function listed(trans: TranslationBundle, names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES);
  return names.length > shown.length
    ? trans.__('%1 and %2 more', shown.join(', '), names.length - shown.length)
    : shown.join(', ');
}
