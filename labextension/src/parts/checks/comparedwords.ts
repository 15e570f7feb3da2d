/** Which parts of a model and of its training differ between ranks, for the panel of variables. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ICompared } from '../../services/protocol';
import { inWords } from '../../services/words';
import type { IVariableAnswer } from '../../tokens';
import { rankWords } from '../../widgets/variables/variablewords';

export function comparedAnswer(trans: TranslationBundle, compared: ICompared): IVariableAnswer {
  const { name, alike, differ, sharded, ranks, not_asked: gaps, not_asked_words: why, differences } = compared;
  const words = trans.__('%1: %2 parts are equal, %3 differ.', rankWords(trans, ranks), alike, differ);
  return {
    words: sharded > 0 ? `${words} ${trans.__('%1 are sharded and not compared.', sharded)}` : words,
    notes: gaps.map((one, i) => trans.__('Not compared: %1', inWords(trans, one, why?.[i]))),
    label: trans.__('Parts of the training of %1 that differ', name),
    rows: differences.map(one => ({
      title: inWords(trans, `${one.what} ${one.name}`, one.title_words),
      values: one.values.map((value, i) => inWords(trans, value, one.values_words?.[i]))
    }))
  };
}
