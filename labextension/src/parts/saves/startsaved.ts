/** Starts groups that begin with the variables of a save. Loaded when it is first used. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { isStarting } from '../../model/format/states';
import { DistError, errorOf, localized } from '../../services/errors';
import type { IErrorBody, IGroup, ILastSave } from '../../services/protocol';
import type { IDistService, IDistStarter } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import type { SaveCommands } from './savecommands';

/** How long the server waits for a group that starts before it is asked again. */
const WAIT_SECONDS = 30;

export class SavedStart {
  constructor(
    private readonly _service: IDistService,
    private readonly _starter: IDistStarter,
    private readonly _saves: SaveCommands,
    private readonly _trans: TranslationBundle
  ) {}

  /** Start a group that has ended again, as it was at its last save. */
  async again(group: IGroup, last: ILastSave): Promise<void> {
    const started =
      group.state === 'dead'
        ? await this._service.restart(group.id)
        : await this._starter.start(group.name, this._starter.describe(group), '');
    await this.begin(started, last);
  }

  /** Give a group that was just started the variables of a save; end the group if that fails, because it has no variables. */
  async begin(started: IGroup, { name, folder }: Pick<ILastSave, 'name' | 'folder'>): Promise<void> {
    try {
      const group = await this._ready(started);
      const { saves } = await this._service.saves(group.id, { folder });
      const save = saves.find(save => save.name === name);
      if (!save) {
        const message = this._trans.__('There is no save %1 in %2 any more.', name, folder);
        throw new DistError({ code: 'not_found', message, hint: '' });
      }
      const failure = await this._saves.restoreNow(group, save);
      if (failure) {
        throw failure;
      }
    } catch (reason) {
      await this._end(started, errorOf(reason));
    }
  }

  private async _ready(started: IGroup): Promise<IGroup> {
    let group = started;
    while (isStarting(group)) {
      group = await this._service.status(group.id, { wait: WAIT_SECONDS, not_state: group.state });
    }
    if (group.error) {
      throw new DistError(group.error);
    }
    return group;
  }

  private async _end({ id, name }: IGroup, error: IErrorBody): Promise<void> {
    await this._service.shutdown(id);
    const ended = this._trans.__('%1 was ended again: it had no variables.', name);
    // Without the group: its notices end with it.
    const { code, message, hint } = localized(error);
    notifyError(new DistError({ code, message, hint: [hint, ended].filter(Boolean).join(' ') }));
  }
}
