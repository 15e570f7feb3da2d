/** Groups and ranks that begin with the variables of a save: what is offered, and how it is named. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { clockTime } from '../../model/format/quantities';
import type { IReplaceChoice } from '../../model/state/replacing';
import type { IGroup, ILastSave } from '../../services/protocol';
import type { IDistService } from '../../tokens';
import type { IBeginning } from '../../widgets/starting/beginnings';
import { BeginWith } from './beginwith';
import { ageWord } from './model/agewords';

/** `begin` gives a group that was just started the variables of a save. */
export function beginningWith(
  service: IDistService,
  begin: (group: IGroup, save: ILastSave) => Promise<void>,
  now: () => number,
  trans: TranslationBundle
): IBeginning {
  return {
    id: 'jupyter-dist:saves',
    Row: BeginWith,
    begin: (group, chosen) => begin(group, chosen as ILastSave),
    find: async name => {
      const [last] = (await service.lastSaves({ group: name })).saves;
      return last
        ? {
            label: asItWas(last, now(), trans),
            title: trans.__('Start the group, and give its ranks the variables of the save'),
            numRanks: last.world_size,
            chosen: last
          }
        : null;
    }
  };
}

/** The words of a button. */
export function asItWas({ saved_at: at }: ILastSave, now: number, trans: TranslationBundle): string {
  return trans.__('Start as it was at %1', clockTime(at, now));
}

/** New processes in place of dead ranks begin with the last save of the group. */
export function replaceChoice(
  { last_save: save }: Pick<IGroup, 'last_save'>,
  now: number,
  trans: TranslationBundle
): IReplaceChoice {
  if (!save) {
    const none = trans.__('There is no save of this group that it can restore.');
    return { id: 'save', label: trans.__('Their variables of the last save'), hint: none, body: null };
  }
  const age = ageWord(trans, now - save.saved_at);
  return {
    id: 'save',
    label: trans.__('Their variables of the save %1 (%2, %3)', save.name, clockTime(save.saved_at, now), age),
    hint: trans.__('The cells that ran since then are offered afterwards.'),
    body: { state: 'save', save: save.name, folder: save.folder }
  };
}
