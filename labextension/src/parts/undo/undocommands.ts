/** Undoes cells on all of their ranks, after a dialog. Loaded when it is first used. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { undoneWith } from './undomodel';
import { DistError } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import type { IDistExecutions, IDistService } from '../../tokens';
import { notifyFailure } from '../../widgets/base/errornote';
import { notifyGroup } from '../../widgets/notices/groupnotices';
import { UndoDialog } from './undodialog';
import { Waiting } from '../../plugins/state/waiting';

const SHORT_MS = 8000;

export class UndoCommands {
  constructor(
    private readonly _service: IDistService,
    executions: IDistExecutions,
    private readonly _trans: TranslationBundle
  ) {
    this._waiting = new Waiting(executions, _trans);
  }

  /** Undo the last run of a cell that can be undone, and the cells after it; without a cell, the last one of the group. */
  async undo(group: IGroup, cellId: string | null): Promise<void> {
    const { _trans: trans } = this;
    const { cells } = await this._service.undoable(group.id);
    const chosen = cellId === null ? cells[0] : cells.find(cell => cell.cell_id === cellId);
    if (!chosen) {
      throw new DistError({
        code: 'cannot_undo',
        message:
          cellId === null
            ? trans.__('No cell of %1 can be undone.', group.name)
            : trans.__('This cell cannot be undone on %1.', group.name),
        hint: trans.__('Only cells that ran with "Keep Undo" can be, as long as their state is kept.')
      });
    }
    const undone = undoneWith(cells, chosen.execution_id);
    const { button } = await new UndoDialog({ trans, group, cells: undone }).launch();
    if (!button.accept) {
      return;
    }
    const begun = await this._service.undo(group.id, { executions: undone.map(({ execution_id: id }) => id) });
    const { isOk, error, text, warnings } = await this._waiting.end(begun, trans.__('Undoing on %1', group.name));
    if (!isOk) {
      const failed = trans.__('Nothing was undone.');
      notifyFailure(error ? new DistError(error) : new Error(failed), group.id);
      return;
    }
    const message = [text || trans.__('Undone.'), warnings].filter(Boolean).join(' ');
    notifyGroup(group.id, message, warnings ? 'warning' : 'success', { autoClose: warnings ? false : SHORT_MS });
  }

  /** Do an undone cell again, and the undone cells before it; without a cell, the next undone one. */
  async redo(group: IGroup, cellId: string | null): Promise<void> {
    const { _trans: trans } = this;
    const { undone = [] } = await this._service.undoable(group.id);
    const chosen = cellId === null ? undone[0] : undone.find(cell => cell.cell_id === cellId);
    if (!chosen) {
      throw new DistError({
        code: 'cannot_undo',
        message: trans.__('No undone cell of %1 can be done again.', group.name),
        hint: trans.__('It is possible until a cell runs that changes something.')
      });
    }
    const executions = undoneWith(undone, chosen.execution_id).map(({ execution_id: id }) => id);
    const begun = await this._service.redo(group.id, { executions });
    const { isOk, error, text } = await this._waiting.end(begun, trans.__('Redoing on %1', group.name));
    if (!isOk) {
      const failed = trans.__('Nothing was done again.');
      notifyFailure(error ? new DistError(error) : new Error(failed), group.id);
      return;
    }
    notifyGroup(group.id, text || trans.__('Done again.'), 'success', { autoClose: SHORT_MS });
  }

  private readonly _waiting: Waiting;
}
