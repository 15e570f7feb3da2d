/** What a part or another extension has found about a variable, below its row. */
import React from 'react';
import type { IVariableAnswer } from '../../tokens';

export function Answer({ answer }: { readonly answer: IVariableAnswer }): React.ReactElement {
  return (
    <>
      {answer.notes.map(note => (
        <p key={note}>{note}</p>
      ))}
      {answer.rows.length > 0 && (
        <table aria-label={answer.label}>
          <tbody>
            {answer.rows.map(({ title, values }) => (
              <tr key={title}>
                <th scope="row">{title}</th>
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
