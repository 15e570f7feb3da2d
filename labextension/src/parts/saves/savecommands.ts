/** Saves and restores a group, with their dialogs and notifications. Loaded when it is first used. */
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { clockTime, formatBytes, formatSeconds } from '../../model/format/quantities';
import { cellsToRerun, type ICellToRerun, proposedName } from './model/saves';
import { DistError, errorOf } from '../../services/errors';
import type { IErrorBody, IExecution, IGroup, ISave, ISavePreview } from '../../services/protocol';
import type { IDistExecutions, IDistService } from '../../tokens';
import { notifyError, notifyFailure } from '../../widgets/base/errornote';
import { notifyGroup } from '../../widgets/notices/groupnotices';
import { RerunDialog } from './dialogs/rerundialog';
import { SaveDialog } from './dialogs/savedialog';
import { SavesDialog } from './dialogs/savesdialog';
import { Waiting } from '../../plugins/state/waiting';

const SHORT_MS = 8000;

/** A preview, or why there is none. */
interface IKnownPreview {
  readonly preview: ISavePreview | null;
  readonly unknown: string;
}

export class SaveCommands {
  constructor(
    private readonly _service: IDistService,
    private readonly _executions: IDistExecutions,
    private readonly _now: () => number,
    private readonly _trans: TranslationBundle
  ) {
    this._waiting = new Waiting(_executions, _trans, execution => execution?.transfer);
  }

  /** Ask for a name, show what the save would lack, and save the group. */
  async save(group: IGroup): Promise<void> {
    const { _trans: trans } = this;
    const [known, { saves }] = await Promise.all([this._preview(group), this._service.saves(group.id)]);
    let name = proposedName(group.name, new Date(this._now() * 1000));
    let error: IErrorBody | null = null;
    let begun: IExecution | null = null;
    while (!begun) {
      const options = { trans, group, name, saves, now: this._now(), error, ...known };
      const { button, value } = await new SaveDialog(options).launch();
      if (!button.accept || value === null) {
        return;
      }
      name = value;
      // The dialog has shown which save it replaces.
      const overwrite = saves.some(save => save.name === name);
      try {
        begun = await this._service.save(group.id, { name, ...(overwrite ? { overwrite } : {}) });
      } catch (reason) {
        error = errorOf(reason);
      }
    }
    await this._endSave(group, name, begun);
  }

  /** Show the saves; restore or delete what the user chooses. */
  async show(group: IGroup): Promise<void> {
    const { _trans: trans } = this;
    for (;;) {
      const found = await this._service.saves(group.id);
      const dialog = new SavesDialog({ trans, group, found, now: this._now() });
      await dialog.launch();
      const { choice } = dialog;
      if (!choice) {
        return;
      }
      if (choice.action === 'restore') {
        await this.restore(group, choice.save);
        return;
      }
      await this._delete(choice.save);
    }
  }

  /** Restore a save after a question, and offer to run the cells of missing names again. */
  async restore(group: IGroup, save: ISave): Promise<void> {
    const { _trans: trans } = this;
    const answer = await showDialog({
      title: trans.__('Restore %1 in %2?', save.name, group.name),
      body: trans.__(
        'All variables of its ranks become what they were at %1. Variables that were made since then are lost. It waits for the cells that run.',
        clockTime(save.saved_at, this._now())
      ),
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Restore') })]
    });
    if (answer.button.accept) {
      const failure = await this.restoreNow(group, save);
      if (failure) {
        notifyFailure(failure, group.id);
      }
    }
  }

  /** Restore a save; resolves to why that failed, or null. */
  async restoreNow(group: IGroup, save: ISave): Promise<Error | null> {
    const { _trans: trans } = this;
    const { name, folder } = save;
    const begun = await this._service.restore(group.id, { name, folder });
    const doing = trans.__('Restoring %1 in %2', name, group.name);
    const { isOk, error, warnings, execution } = await this._waiting.end(begun, doing);
    if (!isOk) {
      return failureOf(error, trans.__('%1 was not restored.', name));
    }
    const restored = trans._n(
      'Restored %2: %1 name on %3.',
      'Restored %2: %1 names on %3.',
      execution?.transfer?.num_names ?? save.num_names, // a group of 0.3 does not count them
      name,
      group.name
    );
    const message = [restored, warnings].filter(Boolean).join(' ');
    notifyGroup(group.id, message, warnings ? 'warning' : 'success', { autoClose: warnings ? false : SHORT_MS });
    await this._rerun(group, save);
    return null;
  }

  private async _rerun(group: IGroup, save: ISave): Promise<void> {
    const { _trans: trans } = this;
    const cells = cellsToRerun(save.skipped);
    if (cells.length === 0) {
      return;
    }
    const { button, value } = await new RerunDialog({ trans, save: save.name, cells }).launch();
    for (const cell of (button.accept && value) || []) {
      if (!(await this._run(group, cell))) {
        return;
      }
    }
  }

  /** Run one of them; resolves to whether that succeeded. */
  private async _run(group: IGroup, { code, ranks, executionCount }: ICellToRerun): Promise<boolean> {
    const { _trans: trans } = this;
    const doing = trans.__('Running cell [%1] again on %2', executionCount, group.name);
    const begun = await this._executions.run(group.id, { code, ranks });
    const { isOk, error } = await this._waiting.end(begun, doing);
    if (isOk) {
      notifyGroup(group.id, trans.__('Cell [%1] ran again.', executionCount), 'success', { autoClose: SHORT_MS });
    } else {
      fail(group, error, trans.__('Cell [%1] failed. Its error is in the output of the ranks.', executionCount));
    }
    return isOk;
  }

  private async _delete({ name, folder }: ISave): Promise<void> {
    const { _trans: trans } = this;
    const answer = await showDialog({
      title: trans.__('Delete the save %1?', name),
      body: trans.__('Its files are removed. Running groups are not affected.'),
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Delete') })]
    });
    if (!answer.button.accept) {
      return;
    }
    try {
      const { freed_bytes: freed } = await this._service.deleteSave(name, { folder });
      const message =
        freed === null
          ? trans.__('Deleted %1. Its space is freed with the next save or deletion.', name)
          : trans.__('Deleted %1: freed %2.', name, formatBytes(freed));
      Notification.success(message, { autoClose: SHORT_MS });
    } catch (reason) {
      notifyError(reason);
    }
  }

  private async _preview(group: IGroup): Promise<IKnownPreview> {
    try {
      return { preview: await this._service.previewSave(group.id), unknown: '' };
    } catch (reason) {
      const { message } = errorOf(reason);
      const unknown = this._trans.__(
        '%1 So it is not known yet what cannot be saved; the save itself will list it.',
        message
      );
      return { preview: null, unknown };
    }
  }

  private async _endSave(group: IGroup, name: string, begun: IExecution): Promise<void> {
    const { _trans: trans } = this;
    const { isOk, error } = await this._waiting.end(begun, trans.__('Saving %1 as %2', group.name, name));
    if (!isOk) {
      fail(group, error, trans.__('Nothing was saved.'));
      return;
    }
    const save = (await this._service.saves(group.id)).saves.find(save => save.name === name);
    const size = save
      ? trans.__('%1 written of %2', formatBytes(save.written_bytes), formatBytes(save.total_bytes))
      : '';
    const took = save ? formatSeconds(save.seconds) : '';
    const lacks = save?.skipped.length
      ? trans._n('%1 name could not be saved.', '%1 names could not be saved.', save.skipped.length)
      : '';
    const facts = [size, took].filter(Boolean).join(', ');
    const message = [trans.__('Saved %1 as %2: %3.', group.name, name, facts), lacks].filter(Boolean).join(' ');
    notifyGroup(group.id, message, lacks ? 'warning' : 'success', { autoClose: SHORT_MS });
  }

  private readonly _waiting: Waiting;
}

function fail({ id }: IGroup, error: IErrorBody | null, otherwise: string): void {
  notifyFailure(failureOf(error, otherwise), id);
}

function failureOf(error: IErrorBody | null, otherwise: string): Error {
  return error ? new DistError(error) : new Error(otherwise);
}
