/** What a save lacks: a row for each name, with the reason and the cell that made it. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { ISaveNote, ISkipped } from '../../../services/protocol';
import { rankSetLabel } from '../../../widgets/rankoutput/items/itemrow';

export interface ILackingListProps {
  readonly trans: TranslationBundle;
  readonly label: string;
  readonly names: readonly (ISaveNote & Partial<ISkipped>)[];
}

export function LackingList({ trans, label, names }: ILackingListProps): React.ReactElement | null {
  if (names.length === 0) {
    return null;
  }
  return (
    <section className="jpd-Lacking">
      <h3>{label}</h3>
      <ul aria-label={label}>
        {names.map(({ name, ranks, reason, execution_count: count, code }) => (
          <li key={`${name} ${ranks} ${reason}`}>
            <code>{name}</code> <span>{reason}</span>
            <span className="jpd-Lacking-where" title={code ?? undefined}>
              {[rankSetLabel(trans, ranks), count ? trans.__('made by cell [%1]', count) : '']
                .filter(Boolean)
                .join(', ')}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
