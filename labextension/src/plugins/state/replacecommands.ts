/** Replaces dead ranks, after a dialog on what their new processes begin with. Loaded when it is first used. */
import type { CommandRegistry } from '@lumino/commands';
import type { TranslationBundle } from '@jupyterlab/translation';
import { changeEnded } from '../../model/state/groupchanges';
import { replaceBody, replaceOffer } from '../../model/state/replacing';
import { DistError } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, type IDistGroups, type IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
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
    const offer = replaceOffer(group) ?? replaceOffer(await this._service.status(group.id));
    if (!offer) {
      await this._service.replace(group.id); // the server has the reason why there is nothing to replace
      return;
    }
    const options = { trans: this._trans, group, offer, now: this._groups.clock.now() };
    const { button, value } = await new ReplaceDialog(options).launch();
    if (!button.accept || value === null) {
      return;
    }
    await this._commands.execute(CommandIDs.offerCatchUp, { group: group.id, asDialog: value === 'cells' });
    const { replaced } = await this._service.replace(group.id, replaceBody(offer, value));
    const ended = await changeEnded(this._groups, group, replaced?.at ?? 0, ({ replaced }) => replaced);
    if (ended?.error) {
      notifyError(new DistError(ended.error), { autoClose: false, group: group.id });
    }
  }
}
