/** Values of running cells: a field for names, and what ranks have under them. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect } from 'react';
import type { IPeeked, IPeekedValue } from '../../services/protocol';
import { inWords } from '../../services/words';
import { ErrorNote } from '../../widgets/base/errornote';
import { useSignal } from '../../widgets/base/hooks';
import { rankWords } from '../../widgets/states/statewords';
import type { WatchModel } from './watch';

export interface IWatchProps {
  readonly model: WatchModel;
  readonly isVisible: boolean;
  readonly trans: TranslationBundle;
}

export function Watch({ model, isVisible, trans }: IWatchProps): React.ReactElement {
  useSignal(model.changed);
  useEffect(() => {
    model.setVisible(isVisible);
    return () => model.setVisible(false);
  }, [model, isVisible]);
  const { names, answer, error } = model;
  const words = trans.__('Names to read, also while cells run: loss, model.weight');
  return (
    <section className="jpd-Watch" aria-label={trans.__('Watch')}>
      <input
        className="jp-mod-styled"
        type="text"
        placeholder={words}
        aria-label={words}
        title={words}
        value={names}
        spellCheck={false}
        onChange={event => (model.names = event.target.value)}
        onKeyDown={event => event.key === 'Escape' && (model.names = '')}
      />
      {error && <ErrorNote error={error} />}
      {answer && answer.values.length > 0 && <Values values={answer.values} trans={trans} />}
      {answer && gaps(trans, answer).map(gap => <p key={gap}>{gap}</p>)}
    </section>
  );
}

function Values({ values, trans }: { values: IPeekedValue[]; trans: TranslationBundle }): React.ReactElement {
  const counts = new Map<string, number>();
  values.forEach(({ name }) => counts.set(name, (counts.get(name) ?? 0) + 1));
  return (
    <table className="jpd-Variables-table" aria-label={trans.__('Values now')}>
      <thead>
        <tr>
          <th scope="col">{trans.__('Name')}</th>
          <th scope="col">{trans.__('Ranks')}</th>
          <th scope="col">{trans.__('Type')}</th>
          <th scope="col">{trans.__('Where')}</th>
          <th scope="col">{trans.__('Value')}</th>
        </tr>
      </thead>
      <tbody>
        {values.map(({ name, ranks, type, dtype, shape, device, place, place_words: placeWords, value }) => (
          <tr key={`${name} ${ranks}`}>
            <th scope="row">{name}</th>
            <td data-column="ranks">{rankWords(trans, ranks)}</td>
            <td>{[type, dtype, shape, device].filter(Boolean).join(' ')}</td>
            <td>{inWords(trans, place, placeWords)}</td>
            <td data-column="value" className={counts.get(name)! > 1 ? 'jpd-mod-differs' : undefined}>
              {value}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What is not there, and why. */
function gaps(trans: TranslationBundle, { values, missing, silent }: IPeeked): string[] {
  const found = Object.entries(missing).map(([name, ranks]) =>
    trans.__('%1 is not there on %2.', name, rankWords(trans, ranks))
  );
  found.push(
    ...silent.map(({ rank, why, why_words: words }) =>
      trans.__('Rank %1 does not answer: %2', rank, inWords(trans, why, words))
    )
  );
  return values.length + found.length > 0 ? found : [trans.__('No function runs. Type names of cells.')];
}
