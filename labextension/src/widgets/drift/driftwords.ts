/** What the cells that ranks have missed are called. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { shortened } from '../../model/format/characters';
import { groupedBy } from '../../model/format/grouped';
import { expandRanks, formatRanks } from '../../model/format/ranks';
import type { IDriftCell, IMissedCell } from '../../services/protocol';
import { rankSetLabel } from '../rankoutput/items/itemrow';

const MAX_LINE = 40;

/** "[3] model = Net()" */
export function cellName({ execution_count: count, line }: IDriftCell): string {
  return `[${count ?? ' '}] ${shortened(line, MAX_LINE)}`;
}

/** Why ranks have not run the version of a cell that counts. */
export function reasonWord(trans: TranslationBundle, reason: IMissedCell['reason']): string {
  switch (reason) {
    case 'replaced':
      return trans.__('replaced since it ran');
    case 'changed':
      return trans.__('ran an older version');
    case 'skipped':
      return trans.__('not sent there');
  }
}

/** On which ranks a cell ran: "ranks 0,2-3", or by version if there are several. */
export function placesOf(trans: TranslationBundle, { runs, versions }: IDriftCell): string {
  const labels = [...groupedBy(runs, ({ version }) => version)].map(([version, same]) => {
    const label = rankSetLabel(trans, formatRanks(same.flatMap(({ ranks }) => expandRanks(ranks))));
    return versions > 1 ? trans.__('%1: version %2', label, version) : label;
  });
  return labels.join(', ') || trans.__('no rank');
}
