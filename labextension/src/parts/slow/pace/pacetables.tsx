/** The tables about where the time of a cell goes: by rank, and by line of code. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { ICodeLine, ILineShare, IRankPace } from '../../../services/protocol';
import { rankSetLabel } from '../../../widgets/rankoutput/items/itemrow';
import { canOpen, pathOf, placeLabel } from '../../../widgets/states/codelines';
import { partLabel, PARTS, partTitle, shareWords, waitedFor } from './pacewords';

interface IRankPaceTableProps {
  readonly rows: readonly IRankPace[];
  readonly trans: TranslationBundle;
}

export function RankPaceTable({ rows, trans }: IRankPaceTableProps): React.ReactElement {
  const label = trans.__('Time by rank');
  return (
    <div className="jpd-Pace-scroll" role="group" aria-label={label} tabIndex={0}>
      <table className="jpd-Pace-table" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">{trans.__('rank')}</th>
            <td aria-hidden="true" />
            {PARTS.map(part => (
              <React.Fragment key={part}>
                <th scope="col" title={partTitle(trans, part)} data-part={part}>
                  <i aria-hidden="true" />
                  {partLabel(trans, part)}
                </th>
                {part === 'wait' && <th scope="col">{trans.__('for')}</th>}
              </React.Fragment>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr key={row.rank} data-rank={row.rank}>
              <th scope="row">{row.rank}</th>
              <td aria-hidden="true">
                <div className="jpd-Pace-bar">
                  {PARTS.map(part => (
                    <i key={part} data-part={part} style={{ width: `${100 * row[part]}%` }} />
                  ))}
                </div>
              </td>
              {PARTS.map(part => (
                <React.Fragment key={part}>
                  <td>{shareWords(row[part])}</td>
                  {part === 'wait' && <td className="jpd-Pace-for">{waitedFor(trans, row)}</td>}
                </React.Fragment>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface ILineTableProps {
  readonly lines: readonly ILineShare[];
  readonly trans: TranslationBundle;
  goTo(place: ICodeLine): void;
}

export function LineTable({ lines, trans, goTo }: ILineTableProps): React.ReactElement {
  return (
    <table className="jpd-Pace-table jpd-Pace-lines" aria-label={trans.__('Time by line of code')}>
      <thead>
        <tr>
          <th scope="col">{trans.__('time')}</th>
          <th scope="col">{trans.__('line')}</th>
          <th scope="col">{trans.__('code')}</th>
          <th scope="col">{trans.__('ranks')}</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(({ ranks, line, share }) => (
          <tr key={`${line.file} ${line.line}`}>
            <td>{shareWords(share)}</td>
            <th scope="row" title={canOpen(line) && pathOf(line) === null ? undefined : line.file}>
              {canOpen(line) ? (
                <button
                  type="button"
                  className="jpd-NoteLine-link"
                  title={trans.__('Go to this line')}
                  onClick={() => goTo(line)}
                >
                  {placeLabel(trans, line)}
                </button>
              ) : (
                placeLabel(trans, line)
              )}
            </th>
            <td title={line.code}>
              <code>{line.code}</code>
            </td>
            <td>{rankSetLabel(trans, ranks)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
