/** Which parts of a model and of its training differ between ranks, below its row. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { ICompared } from '../../services/protocol';
import { rankWords } from './variablewords';

export interface ICheckedModelProps {
  readonly checked: ICompared;
  readonly trans: TranslationBundle;
}

export function CheckedModel({ checked, trans }: ICheckedModelProps): React.ReactElement {
  return (
    <>
      {checked.not_asked.map(one => (
        <p key={one}>{trans.__('Not compared: %1', one)}</p>
      ))}
      {checked.differences.length > 0 && (
        <table aria-label={trans.__('Parts of the training of %1 that differ', checked.name)}>
          <tbody>
            {checked.differences.map(({ what, name, values }) => (
              <tr key={`${what} ${name}`}>
                <th scope="row">{`${what} ${name}`}</th>
                <td className="jpd-mod-differs">
                  {values.map(value => (
                    <div key={value}>{value}</div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

/** Whether all is equal, in a sentence. */
export function checkedWords(trans: TranslationBundle, checked: ICompared): string {
  const { alike, differ, sharded, ranks } = checked;
  const words = trans.__('%1: %2 parts are equal, %3 differ.', rankWords(trans, ranks), alike, differ);
  return sharded > 0 ? `${words} ${trans.__('%1 are sharded and not compared.', sharded)}` : words;
}
