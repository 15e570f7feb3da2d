/** Describes where JupyterLab's debugger has stopped a cell. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatRanks } from '../../../model/format/ranks';
import type { IGroup } from '../../../services/protocol';
import { rankSetLabel } from '../items/itemrow';

export interface ICellStop {
  readonly ranks: string;
  /** Whether no rank of the cell runs on. */
  readonly isWhole: boolean;
  /** The line of the cell; null where the ranks are at several lines, or in files. */
  readonly line: number | null;
}

export function stopOf(group: IGroup | null, execution: string): ICellStop | null {
  const running = (group?.ranks ?? []).filter(rank => rank.execution_id === execution);
  const stopped = running.filter(rank => rank.stopped_at);
  if (stopped.length === 0) {
    return null;
  }
  const lines = new Set(stopped.map(({ stopped_at: stop }) => (stop!.file === null ? stop!.line : null)));
  return {
    ranks: formatRanks(stopped.map(({ rank }) => rank)),
    isWhole: stopped.length === running.length,
    line: lines.size === 1 ? [...lines][0] : null
  };
}

/** "stopped at a breakpoint, line 3", "rank 1 is stopped at a breakpoint". */
export function stopWords(trans: TranslationBundle, { ranks, isWhole, line }: ICellStop): string {
  if (isWhole) {
    return line === null ? trans.__('stopped at a breakpoint') : trans.__('stopped at a breakpoint, line %1', line);
  }
  const label = rankSetLabel(trans, ranks);
  return /^\d+$/.test(ranks)
    ? trans.__('%1 is stopped at a breakpoint', label)
    : trans.__('%1 are stopped at a breakpoint', label);
}
