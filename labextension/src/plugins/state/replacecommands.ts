/** Replaces dead ranks, after a dialog on what their new processes begin with. Loaded when it is first used. */
import type { CommandRegistry } from '@lumino/commands';
import type { TranslationBundle } from '@jupyterlab/translation';
import { changeEnded } from '../../model/state/groupchanges';
import { replaceBody, replaceOffer } from '../../model/state/replacing';
import { DistError } from '../../services/errors';
import type { IErrorBody, IGroup } from '../../services/protocol';
import { CommandIDs, type IDistGroups, type IDistService } from '../../tokens';
import { notifyFailure } from '../../widgets/base/errornote';
import { replaceChoices } from '../../widgets/starting/beginnings';
import { ReplaceDialog } from '../../widgets/state/replacedialog';

export class ReplaceCommands {
  constructor(
    private readonly _service: IDistService,
    private readonly _groups: IDistGroups,
    private readonly _commands: CommandRegistry,
    private readonly _trans: TranslationBundle
  ) {}

  /** Replace the dead ranks of a group. The group's note lists the names that new ranks have and lack. */
  async replace(group: IGroup): Promise<void> {
    // The page may not show the death yet.
    const now = replaceOffer(group) ? group : await this._service.status(group.id);
    const offer = replaceOffer(now, await replaceChoices(now));
    if (!offer) {
      await this._service.replace(group.id); // the server has the reason why there is nothing to replace
      return;
    }
    const canCatchUp = this._commands.hasCommand(CommandIDs.offerCatchUp);
    const options = { trans: this._trans, group, offer, canCatchUp };
    const { button, value } = await new ReplaceDialog(options).launch();
    if (!button.accept || value === null) {
      return;
    }
    if (canCatchUp) {
      await this._commands.execute(CommandIDs.offerCatchUp, { group: group.id, asDialog: value === 'cells' });
    }
    const { replaced } = await this._service.replace(group.id, replaceBody(offer, value));
    const ended = await changeEnded(this._groups, group, replaced?.at ?? 0, ({ replaced }) => replaced);
    if (ended?.error) {
      this._notifyOf(ended.error, group);
    }
  }

  /** Show why ranks were not replaced, until the group has no dead rank any more. */
  private _notifyOf(error: IErrorBody, { id }: IGroup): void {
    const isWhole = (): boolean => this._groups.find(id)?.state === 'ready';
    if (isWhole()) {
      notifyFailure(new DistError(error), id);
      return;
    }
    const notice = notifyFailure(new DistError(error), id, { holds: true });
    const look = (): void => {
      if (notice.isOver || isWhole()) {
        this._groups.changed.disconnect(look);
        notice.end();
      }
    };
    this._groups.changed.connect(look);
  }
}
