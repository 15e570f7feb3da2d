/** The actions on a group, with their dialogs and notifications. */
import { Dialog, InputDialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatBytes } from '../../model/format/quantities';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { notifyGroup } from '../../widgets/notices/groupnotices';
import { stateWord } from '../../widgets/states/statewords';

const SHORT_MS = 4000;

export class GroupCommands {
  constructor(service: IDistService, groups: IDistGroups, trans: TranslationBundle) {
    this._service = service;
    this._groups = groups;
    this._trans = trans;
  }

  async interrupt(group: IGroup, ranks: string): Promise<void> {
    await this._try(group, async () => {
      const answer = await this._service.interrupt(group.id, { ranks });
      if (!answer.interrupted) {
        say(group, this._trans.__('No rank of %1 was busy.', group.name));
      }
    });
  }

  async restart(group: IGroup): Promise<void> {
    const trans = this._trans;
    const isSure = await this._confirm(
      trans.__('Restart the ranks of %1?', group.name),
      trans.__('All variables of its ranks will be lost. The log is kept.'),
      trans.__('Restart')
    );
    if (isSure) {
      await this._try(group, () => this._service.restart(group.id));
    }
  }

  /** Kill a rank that cannot be interrupted; without a rank, ask which one. */
  async kill(group: IGroup, rank: number | null): Promise<void> {
    const trans = this._trans;
    const chosen = rank ?? (await this._chooseRank(group));
    if (chosen === null) {
      return;
    }
    const isSure = await this._confirm(
      trans.__('Kill rank %1 of %2?', chosen, group.name),
      trans.__(
        'Its process ends and its variables are lost. The other ranks keep theirs. Replace the dead rank afterwards.'
      ),
      trans.__('Kill')
    );
    if (isSure) {
      await this._try(group, () => this._service.kill(group.id, chosen));
    }
  }

  /** No confirmation, because nothing is lost. The result is in the group's note. */
  async reform(group: IGroup): Promise<void> {
    await this._try(group, () => this._service.reform(group.id));
  }

  async startAgain(group: IGroup): Promise<void> {
    await this._try(group, () => this._service.startAgain(group.name));
  }

  async shutdown(group: IGroup): Promise<void> {
    const trans = this._trans;
    const isGone = group.state === 'dead' || group.state === 'lost';
    const isSure =
      isGone ||
      (await this._confirm(
        trans.__('Shut down %1?', group.name),
        trans._n(
          'Its rank will stop, and all its variables will be lost.',
          'Its %1 ranks will stop, and all their variables will be lost.',
          group.world_size,
          group.world_size
        ),
        trans.__('Shut Down')
      ));
    if (isSure) {
      await this._try(group, () => this._service.shutdown(group.id));
    }
  }

  async shutdownAll(): Promise<void> {
    const trans = this._trans;
    const { groups } = this._groups;
    const isSure = await this._confirm(
      trans.__('Shut down all groups of ranks?'),
      groups.map(group => group.name).join(', '),
      trans.__('Shut Down All')
    );
    if (isSure) {
      await Promise.all(groups.map(group => this._try(group, () => this._service.shutdown(group.id))));
    }
  }

  async emptyCache(group: IGroup): Promise<void> {
    const trans = this._trans;
    await this._try(group, async () => {
      const freed = Object.values((await this._service.emptyCache(group.id)).freed_bytes);
      const bytes = formatBytes(freed.reduce((a, b) => a + b, 0));
      say(
        group,
        freed.length === 0
          ? trans.__('All ranks of %1 are busy: nothing was freed.', group.name)
          : trans._n('%2: freed %3 on %1 rank.', '%2: freed %3 on %1 ranks.', freed.length, group.name, bytes)
      );
    });
  }

  private async _chooseRank(group: IGroup): Promise<number | null> {
    const living = group.ranks.filter(rank => rank.state !== 'dead');
    const { value } = await InputDialog.getItem({
      title: this._trans.__('Kill which rank of %1?', group.name),
      items: living.map(rank => `${rank.rank}: ${stateWord(this._trans, rank.state)}`)
    });
    return value === null ? null : parseInt(value, 10);
  }

  private async _confirm(title: string, body: string, accept: string): Promise<boolean> {
    const answer = await showDialog({
      title,
      body,
      buttons: [Dialog.cancelButton({ label: this._trans.__('Cancel') }), Dialog.warnButton({ label: accept })]
    });
    return answer.button.accept;
  }

  private async _try({ id: group }: IGroup, action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
    } catch (reason) {
      notifyError(reason, { group });
    }
  }

  private readonly _service: IDistService;
  private readonly _groups: IDistGroups;
  private readonly _trans: TranslationBundle;
}

function say({ id }: IGroup, message: string): void {
  notifyGroup(id, message, 'info', { autoClose: SHORT_MS });
}
