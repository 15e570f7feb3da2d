/** What the cells that ranks have missed are called. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { shortened } from '../../model/format/characters';
import { groupedBy } from '../../model/format/grouped';
import { expandRanks, formatRanks } from '../../model/format/ranks';
import type { IMissedStep } from './model/steps';
import type { IDrift, IDriftCell, IMissedCell } from '../../services/protocol';
import { rankSetLabel } from '../../widgets/rankoutput/items/itemrow';

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

/** "rank 2 died in it"; empty if it ended well. */
export function endWord(trans: TranslationBundle, { ended }: IMissedStep): string {
  if (!ended) {
    return '';
  }
  const label = rankSetLabel(trans, ended.on);
  switch (ended.state) {
    case 'lost':
      return trans.__('%1 died in it', label);
    case 'error':
      return trans.__('%1 failed in it', label);
    case 'interrupted':
      return trans.__('interrupted on %1', label);
    default:
      return trans.__('%1 has not finished it', label);
  }
}

/** "uses what [6] sets": it is not offered, because that cell is not. */
export function withheldWord(trans: TranslationBundle, { cell, reason }: IMissedStep, { cells }: IDrift): string {
  const before = cells.filter(({ execution_id: id, offered }) => !offered && cell.uses.includes(id));
  const counts = before.map(({ execution_count: count }) => `[${count ?? ' '}]`);
  return reason === 'replaced' && counts.length > 0 ? trans.__('uses what %1 sets', counts.join(', ')) : '';
}

/** On which ranks a cell ran: "ranks 0,2-3", or by version if there are several. */
export function placesOf(trans: TranslationBundle, { runs, versions }: IDriftCell): string {
  const labels = [...groupedBy(runs, ({ version }) => version)].map(([version, same]) => {
    const label = rankSetLabel(trans, formatRanks(same.flatMap(({ ranks }) => expandRanks(ranks))));
    return versions > 1 ? trans.__('%1: version %2', label, version) : label;
  });
  return labels.join(', ') || trans.__('no rank');
}
