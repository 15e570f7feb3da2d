/** Which parts of a model and of its training differ between ranks, for the panel of variables. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ICompared } from '../../services/protocol';
import type { IVariableAnswer } from '../../tokens';
import { rankWords } from '../../widgets/variables/variablewords';

export function comparedAnswer(trans: TranslationBundle, compared: ICompared): IVariableAnswer {
  const { name, alike, differ, sharded, ranks, not_asked: gaps, differences } = compared;
  const words = trans.__('%1: %2 parts are equal, %3 differ.', rankWords(trans, ranks), alike, differ);
  return {
    words: sharded > 0 ? `${words} ${trans.__('%1 are sharded and not compared.', sharded)}` : words,
    notes: gaps.map(one => trans.__('Not compared: %1', one)),
    label: trans.__('Parts of the training of %1 that differ', name),
    rows: differences.map(one => ({ title: `${one.what} ${one.name}`, values: one.values }))
  };
}
