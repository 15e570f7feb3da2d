/** New processes in place of dead ranks begin with copies, after the others have undone the cell in which they died. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type IReplaceChoice, ranksToReplace } from '../../model/state/replacing';
import type { IGroup } from '../../services/protocol';
import type { IDistService } from '../../tokens';
import { cellName } from './cellname';

/** The choice, named with what the undo leaves as it is; null: the cell cannot be undone. */
export async function takenBack(
  service: Pick<IDistService, 'undoable'>,
  group: IGroup,
  trans: TranslationBundle
): Promise<IReplaceChoice | null> {
  const { lost = [] } = await service.undoable(group.id);
  if (lost.length === 0) {
    return null;
  }
  const names = [...lost].reverse().map(cell => cellName(trans, cell));
  const left = [...new Set(lost.flatMap(({ cost }) => cost.not_kept))];
  const parts = trans.__(
    'The other ranks undo it. Of what is divided among the ranks (FSDP2, DTensor), the dead ones get the parts that they kept.'
  );
  return {
    id: 'undo',
    label: trans.__('Copies of the others, as before %1', names.join(', ')),
    hint: left.length > 0 ? `${parts} ${trans.__('Not undone: %1', left.join('; '))}` : parts,
    // A single rank cannot be compared with another one: all of its variables are copied.
    body: { state: 'undo', ...(ranksToReplace(group).others.length === 1 ? { others: 'copy' } : {}) }
  };
}
