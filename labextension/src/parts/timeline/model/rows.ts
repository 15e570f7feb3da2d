/** The table beside the timeline: a row for each rank as it is now, in order. Pure. */
import type { IExecution, RankState } from '../../../services/protocol';
import type { TimelineModel } from './timeline';

export const RANK_COLUMNS = ['rank', 'state', 'pid', 'host', 'device', 'memory', 'cpu', 'cell', 'line'] as const;

export type RankColumn = (typeof RANK_COLUMNS)[number];

export interface IRow {
  readonly rank: number;
  readonly state: RankState;
  readonly pid: number | null;
  /** Empty: the server's machine. */
  readonly host: string;
  readonly device: string;
  /** In bytes; null where it is not known. */
  readonly memory: number | null;
  readonly cpu: number | null;
  /** The cell that the rank runs. */
  readonly cell: IExecution | null;
  /** Where it was at the last look. */
  readonly line: string;
  /** The collective that it waited in at the last look. */
  readonly call: string | null;
}

export interface IOrder {
  readonly column: RankColumn;
  readonly isDown: boolean;
}

/** The rows by rank. */
export function rowsOf(model: TimelineModel): IRow[] {
  const { known, columns, sights } = model;
  const hosts = new Map((known?.nodes ?? []).map(({ node, host }) => [node, host ?? '']));
  return (known?.ranks ?? []).map(one => {
    const { rank, state, pid, device, execution_id } = one;
    const isAlive = state !== 'dead';
    const sight = sights.latest(rank);
    const isCurrent = sight !== null && execution_id !== null && sight.execution === execution_id;
    const cell = model.execution(execution_id);
    return {
      rank,
      state,
      pid,
      host: hosts.get(one.node ?? -1) ?? '',
      device,
      memory: isAlive ? columns.latest(rank, columns.memory) : null,
      cpu: isAlive ? columns.latest(rank, 'cpu_percent') : null,
      cell,
      line: isCurrent ? shortPlace(sight.place, cell) : '',
      call: isCurrent ? sight.call : null
    };
  });
}

/** The place without the name of its cell, which stands beside it: there is little room. */
export function shortPlace(place: string, cell: Pick<IExecution, 'execution_count'> | null): string {
  return cell ? place.replace(` of cell [${cell.execution_count}]`, '') : place;
}

/** The rows in an order; equal ones by rank. What is not known comes last. */
export function arrange(rows: readonly IRow[], { column, isDown }: IOrder): IRow[] {
  const sign = isDown ? -1 : 1;
  return [...rows].sort((a, b) => compare(keyOf(a, column), keyOf(b, column), sign) || a.rank - b.rank);
}

/** The order after a click on a column: numbers begin with the greatest. */
export function ordered(before: IOrder, column: RankColumn): IOrder {
  const isDown = before.column === column ? !before.isDown : column === 'memory' || column === 'cpu';
  return { column, isDown };
}

function keyOf(row: IRow, column: RankColumn): string | number | null {
  return column === 'cell' ? (row.cell?.execution_count ?? null) : row[column] === '' ? null : row[column];
}

function compare(a: string | number | null, b: string | number | null, sign: number): number {
  if (a === null || b === null) {
    return Number(a === null) - Number(b === null);
  }
  const way =
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
  return sign * way;
}
