/** The table of ranks as they are now; it gives the content of the lanes to screen readers, too. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretUpIcon } from '@jupyterlab/ui-components';
import React, { memo } from 'react';
import { formatBytes, formatPercent } from '../../model/format/quantities';
import { arrange, RankColumn, RANK_COLUMNS, IOrder, IRow, ordered } from './model/rows';
import type { IExecution } from '../../services/protocol';
import { hueOf } from '../../widgets/states/rankcolor';
import { StateGlyph } from '../../widgets/states/stateglyph';
import { stateWord } from '../../widgets/states/statewords';
import { cellWords } from './timelinewords';

export interface IRankTableProps {
  readonly rows: readonly IRow[];
  readonly order: IOrder;
  readonly pointed: number | null;
  readonly label: string;
  readonly trans: TranslationBundle;
  onOrder(order: IOrder): void;
  onPoint(rank: number | null): void;
  onOpenLog(rank: number): void;
  onOpenCell(rank: number, execution: IExecution): void;
}

/** Drawn again only if one of its properties is another: the pointer moves often, ranks do not. */
export const RankTable = memo((props: IRankTableProps): React.ReactElement => {
  const { rows, order, pointed, label, trans, onPoint, onOpenLog, onOpenCell } = props;
  return (
    <table className="jpd-Timeline-table" aria-label={label} onMouseLeave={() => onPoint(null)}>
      <Head {...props} />
      <tbody>
        {arrange(rows, order).map(row => (
          <Row key={row.rank} {...{ row, trans, onPoint, onOpenLog, onOpenCell }} isPointed={row.rank === pointed} />
        ))}
      </tbody>
    </table>
  );
});

function Head({ order, onOrder, trans }: IRankTableProps): React.ReactElement {
  const Caret = order.isDown ? caretDownIcon : caretUpIcon;
  return (
    <thead>
      <tr>
        {RANK_COLUMNS.map(column => (
          <th
            key={column}
            scope="col"
            data-column={column}
            aria-sort={order.column !== column ? undefined : order.isDown ? 'descending' : 'ascending'}
          >
            <button
              type="button"
              title={trans.__('Sort by %1', columnLabel(trans, column))}
              onClick={() => onOrder(ordered(order, column))}
            >
              {columnLabel(trans, column)}
              {order.column === column && <Caret.react tag="span" width="12px" />}
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

function columnLabel(trans: TranslationBundle, column: RankColumn): string {
  const labels: Record<RankColumn, string> = {
    rank: trans.__('Rank'),
    state: trans.__('State'),
    pid: trans.__('Process'),
    host: trans.__('Host'),
    device: trans.__('Device'),
    memory: trans.__('Memory'),
    cpu: trans.__('CPU'),
    cell: trans.__('Cell'),
    line: trans.__('Line')
  };
  return labels[column];
}

interface IRankTableRowProps extends Pick<IRankTableProps, 'trans' | 'onPoint' | 'onOpenLog' | 'onOpenCell'> {
  readonly row: IRow;
  readonly isPointed: boolean;
}

const Row = memo(
  ({ row, isPointed, trans, onPoint, onOpenLog, onOpenCell }: IRankTableRowProps): React.ReactElement => {
    const { rank, state, cell } = row;
    return (
      <tr data-rank={rank} data-pointed={isPointed} onMouseEnter={() => onPoint(rank)}>
        <th scope="row">
          <button
            type="button"
            className="jpd-Timeline-rank"
            data-hue={hueOf(rank)}
            title={trans.__('Open the output of rank %1', rank)}
            onClick={() => onOpenLog(rank)}
            onFocus={() => onPoint(rank)}
          >
            {rank}
          </button>
        </th>
        <td>
          <StateGlyph state={state} /> {stateWord(trans, state)}
        </td>
        <td data-column="pid">{row.pid ?? ''}</td>
        <td>{row.host || trans.__('server')}</td>
        <td>{row.device}</td>
        <td data-column="memory">{row.memory === null ? '' : formatBytes(row.memory)}</td>
        <td data-column="cpu">{row.cpu === null ? '' : formatPercent(row.cpu)}</td>
        <td>
          {cell && (
            <button type="button" title={trans.__('Show the cell')} onClick={() => onOpenCell(rank, cell)}>
              {cellWords(trans, cell)}
            </button>
          )}
        </td>
        <td data-column="line" title={[row.call && trans.__('in %1', row.call), row.line].filter(Boolean).join('\n')}>
          {row.call && <span className="jpd-Timeline-call">{trans.__('in %1', row.call.split(',')[0])} </span>}
          <code>{row.line}</code>
        </td>
      </tr>
    );
  }
);
