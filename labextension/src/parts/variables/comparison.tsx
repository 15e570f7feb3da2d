/** In what a variable differs between ranks, and what of it was not compared, below its row. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon } from '@jupyterlab/ui-components';
import React, { useState } from 'react';
import type { IComparedVariable } from './model/variables';
import type { INotCompared, ITensorDifference } from '../../services/protocol';
import { ErrorNote } from '../../widgets/base/errornote';
import { rankWords } from '../../widgets/states/statewords';
import { comparisonWords, elementWords, gapWords, mostWords } from './variablewords';

/** At first; of a model of thousands of tensors, all may differ. */
const MAX_SHOWN = 50;

export interface IComparisonProps {
  readonly name: string;
  readonly compared: IComparedVariable;
  /** A cell has run since. */
  readonly isOld: boolean;
  readonly trans: TranslationBundle;
  onClose(): void;
}

export function Comparison({ name, compared, isOld, trans, onClose }: IComparisonProps): React.ReactElement {
  const { result, error } = compared;
  const words = result ? comparisonWords(trans, result) : '';
  const time = new Date(compared.at).toLocaleTimeString();
  return (
    <div className="jpd-Comparison" data-old={isOld}>
      <div className="jpd-Comparison-head">
        {/* Here before its text is, so that screen readers announce the text. */}
        <p role="status">
          {words || (error ? '' : trans.__('Comparing %1\u2026', name))}
          {words && isOld && ` ${trans.__('That was at %1, before the last cell.', time)}`}
        </p>
        <button
          type="button"
          className="jpd-IconButton"
          title={trans.__('Close the comparison of %1', name)}
          aria-label={trans.__('Close the comparison of %1', name)}
          onClick={onClose}
        >
          <closeIcon.react tag="span" width="14px" />
        </button>
      </div>
      {error && <ErrorNote error={error} />}
      {result && gapWords(trans, result).map(gap => <p key={gap}>{gap}</p>)}
      {result && result.differences.length > 0 && (
        <Differences name={name} differences={result.differences} trans={trans} />
      )}
      {result && result.not_compared.length > 0 && <Gaps name={name} gaps={result.not_compared} trans={trans} />}
    </div>
  );
}

interface IGapsProps {
  readonly name: string;
  readonly gaps: readonly INotCompared[];
  readonly trans: TranslationBundle;
}

/** What was not compared, and why. */
function Gaps({ name, gaps, trans }: IGapsProps): React.ReactElement {
  return (
    <ul className="jpd-Comparison-gaps" aria-label={trans.__('Parts of %1 that were not compared', name)}>
      {gaps.map(({ path, ranks, why }) => (
        <li key={`${path} ${ranks}`}>
          {trans.__('%1 on %2 was not compared: %3.', path || name, rankWords(trans, ranks), why)}
        </li>
      ))}
    </ul>
  );
}

interface IDifferencesProps {
  readonly name: string;
  readonly differences: readonly ITensorDifference[];
  readonly trans: TranslationBundle;
}

function Differences({ name, differences, trans }: IDifferencesProps): React.ReactElement {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? differences : differences.slice(0, MAX_SHOWN);
  const rest = differences.length - shown.length;
  return (
    <>
      <table aria-label={trans.__('Parts of %1 that differ', name)}>
        <thead>
          <tr>
            <th scope="col">{trans.__('Part')}</th>
            <th scope="col">{trans.__('Differs on')}</th>
            <th scope="col">{trans.__('From')}</th>
            <th scope="col">{trans.__('Elements')}</th>
            <th scope="col">{trans.__('By at most')}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(one => (
            <tr key={`${one.path} ${one.ranks}`}>
              <th scope="row">{one.path || name}</th>
              <td className="jpd-mod-differs">{rankWords(trans, one.ranks)}</td>
              <td>{rankWords(trans, one.reference)}</td>
              <td>{elementWords(trans, one)}</td>
              <td className="jpd-mod-differs">{mostWords(trans, one)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rest > 0 && (
        <button type="button" className="jpd-Variables-more" onClick={() => setWhole(true)}>
          {trans._n('Show %1 more difference', 'Show %1 more differences', rest)}
        </button>
      )}
    </>
  );
}
