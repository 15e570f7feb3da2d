import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { notifyError } from '../../widgets/base/errornote';
import { GroupNotice, notifyGroup } from '../../widgets/notices/groupnotices';
import { IDeletedRun, IDistNotebooks } from '../../tokens';

/** Do not notify about cells that are moved by cut and paste, or restored at once. */
const PATIENCE_MS = 1500;

/** Notifies about deleted cells that keep ranks busy. */
export const deletedCellsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:deleted-cells',
  description: 'Notifies about deleted cells that are still running on ranks, and interrupts them.',
  autoStart: true,
  requires: [IDistNotebooks],
  optional: [ITranslator],
  activate: (_: JupyterFrontEnd, notebooks: IDistNotebooks, translator: ITranslator | null): void => {
    const notices = new DeletedCells(notebooks, (translator ?? nullTranslator).load('jupyter_dist'));
    notebooks.changed.connect(() => notices.update());
  }
};

/** Notifies of each deleted cell while it runs. */
class DeletedCells {
  constructor(
    private readonly _notebooks: IDistNotebooks,
    private readonly _trans: TranslationBundle
  ) {}

  update(): void {
    const deleted = new Map(this._notebooks.deleted.map(run => [run.id, run]));
    for (const [id, notice] of this._notices) {
      if (!deleted.has(id)) {
        notice.end();
        this._notices.delete(id);
      }
    }
    if ([...deleted.keys()].some(id => !this._notices.has(id)) && this._timer === 0) {
      this._timer = window.setTimeout(() => {
        this._timer = 0;
        this._notify();
      }, PATIENCE_MS);
    }
  }

  private _notify(): void {
    for (const run of this._notebooks.deleted) {
      if (!this._notices.has(run.id)) {
        this._notices.set(run.id, this._show(run));
      }
    }
  }

  private _show(run: IDeletedRun): GroupNotice {
    const trans = this._trans;
    const words = /^\d+$/.test(run.ranks)
      ? trans.__("A deleted cell is still running on rank %1 of '%2'.", run.ranks, run.group)
      : trans.__("A deleted cell is still running on ranks %1 of '%2'.", run.ranks, run.group);
    return notifyGroup(run.groupId, words, 'warning', {
      autoClose: false,
      holds: true,
      actions: [
        {
          label: trans.__('Interrupt'),
          caption: trans.__('Interrupt the deleted cell'),
          callback: () => void this._interrupt(run)
        }
      ]
    });
  }

  private async _interrupt(run: IDeletedRun): Promise<void> {
    try {
      await run.interrupt();
    } catch (reason) {
      notifyError(reason, { group: run.groupId });
    }
  }

  private readonly _notices = new Map<string, GroupNotice>();
  private _timer = 0;
}
