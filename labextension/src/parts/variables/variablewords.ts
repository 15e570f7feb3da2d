/** The sentences of the panel of variables. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatBytes } from '../../model/format/quantities';
import { differs, unseen } from './model/arrange';
import type { IHeldAlike } from './model/held';
import type { Phase } from '../../model/format/states';
import { rankWords } from '../../widgets/states/statewords';
import type { IComparison, ITensorDifference, IVariableRow, IVariables } from '../../services/protocol';

type Trans = TranslationBundle;

/** What the panel shows, and why it is not newer. */
export function statusWords(trans: Trans, phase: Phase, answer: IVariables | null, time: string): string {
  const why: Record<Phase, string> = {
    idle: '',
    busy: trans.__('Busy: ranks run a cell.'),
    starting: trans.__('The ranks are starting.'),
    away: trans.__('The group is parked.'),
    gone: trans.__('The group has ended.')
  };
  if (!answer) {
    const then = phase === 'gone' ? '' : trans.__('Variables are listed when they are idle.');
    return phase === 'idle' ? trans.__('Asking the ranks\u2026') : [why[phase], then].join(' ').trim();
  }
  if (phase !== 'idle') {
    return [why[phase], trans.__('These are the variables of %1.', time)].join(' ');
  }
  const names = answer.variables;
  const differing = names.filter(differs).length;
  const count = trans._n('%1 variable', '%1 variables', names.length);
  const found =
    differing > 0
      ? trans._n('%2, %1 differs between ranks (%3).', '%2, %1 differ between ranks (%3).', differing, count, time)
      : trans.__('%1, none differs between ranks (%2).', count, time);
  const partly = unseen(names).length;
  const rest = trans._n(
    'Of %1 other, not all was looked at, such as the numbers in tensors: Compare does that.',
    'Of %1 others, not all was looked at, such as the numbers in tensors: Compare does that.',
    partly
  );
  return partly > 0 ? `${found} ${rest}` : found;
}

/** What an answer does not have: ranks, names, tensors. */
export function gapWords(trans: Trans, answer: IVariables | IComparison): string[] {
  const gaps: string[] = [];
  if (answer.busy) {
    gaps.push(trans.__('Busy and not asked: %1. They answer between cells.', rankWords(trans, answer.busy)));
  }
  if ('missing' in answer && answer.missing) {
    gaps.push(trans.__('Not defined on %1.', rankWords(trans, answer.missing)));
  }
  if (answer.silent) {
    gaps.push(trans.__('No answer from %1.', rankWords(trans, answer.silent)));
  }
  if (answer.left_out > 0) {
    gaps.push(
      'variables' in answer
        ? trans._n('%1 more name is not listed.', '%1 more names are not listed.', answer.left_out)
        : trans._n('%1 more finding is not listed.', '%1 more findings are not listed.', answer.left_out)
    );
  }
  return gaps;
}

/** The other holders that a line names. */
const MAX_OTHERS = 3;

/** "Memory of ranks 0-1: 28.0 MB held on each, processes of up to 317 MB." */
export function heldWords(
  trans: Trans,
  { ranks, bytes, residentBytes, allocatedBytes, reservedBytes, isWhole }: IHeldAlike
): string {
  const size = isWhole ? formatBytes(bytes) : trans.__('more than %1', formatBytes(bytes));
  const resident = formatBytes(residentBytes);
  if (allocatedBytes !== null) {
    const counted = [formatBytes(allocatedBytes), formatBytes(reservedBytes)];
    return trans.__(
      'Memory of %1: %2 held by name, %3 allocated, %4 reserved.',
      rankWords(trans, ranks),
      size,
      ...counted
    );
  }
  return /^\d+$/.test(ranks)
    ? trans.__('Memory of %1: %2 held, the process has %3.', rankWords(trans, ranks), size, resident)
    : trans.__('Memory of %1: %2 held on each, processes have up to %3.', rankWords(trans, ranks), size, resident);
}

/** "Beside variables: Out[3] 4.00 MB, x in step() 8.00 MB." */
export function otherWords(trans: Trans, { others }: IHeldAlike): string {
  const named = others.slice(0, MAX_OTHERS).map(({ name, bytes }) => `${name} ${formatBytes(bytes)}`);
  const rest = others.length - named.length;
  const list = [...named, ...(rest > 0 ? [trans._n('%1 more', '%1 more', rest)] : [])].join(', ');
  return trans.__('Beside variables: %1.', list);
}

const CLEAR_RESULTS = '%reset -f out';
const CLEAR_TRACEBACK = 'import sys; sys.last_value = sys.last_traceback = sys.last_exc = None';

/** Code that frees what results and the last traceback hold, and the sentence that it is in. */
export function freeWords(trans: Trans, { others }: IHeldAlike): { code: string; sentence: string }[] {
  const frees = (where: string): boolean => others.some(one => one.where === where && one.frees_bytes > 0);
  return [
    ...(frees('result') ? [{ code: CLEAR_RESULTS, sentence: trans.__('%1 frees results.', CLEAR_RESULTS) }] : []),
    ...(frees('traceback')
      ? [{ code: CLEAR_TRACEBACK, sentence: trans.__('%1 frees what the last traceback keeps.', CLEAR_TRACEBACK) }]
      : [])
  ];
}

/** "parameters 4.00 MB, gradients 4.00 MB; shared with adam": what is in the bytes of a variable. */
export function bytesWords(trans: Trans, { parts = {}, shares = [] }: IVariableRow): string {
  const words: Record<string, string> = {
    parameters: trans.__('parameters'),
    buffers: trans.__('buffers'),
    gradients: trans.__('gradients'),
    state: trans.__('state')
  };
  const named = Object.entries(parts).map(([part, size]) => `${words[part] ?? part} ${formatBytes(size)}`);
  const shared = shares.length > 0 ? trans.__('shared with %1', shares.join(', ')) : '';
  return [named.length > 1 || 'state' in parts ? named.join(', ') : '', shared].filter(Boolean).join('; ');
}

/** "model: 1 of 4 tensors differs, 3 are equal. 9 other values are equal. Compared 2.1 kB on ranks 0-1." */
export function comparisonWords(trans: Trans, found: IComparison): string {
  const { name, ranks } = found;
  if (!/[-,]/.test(ranks)) {
    return ranks
      ? found.missing
        ? trans.__('%1: only on %2, so there is nothing to compare.', name, rankWords(trans, ranks))
        : trans.__('%1: only %2 answered, so there is nothing to compare.', name, rankWords(trans, ranks))
      : trans.__('%1: no rank answered.', name);
  }
  const sentences = [`${name}: ${countWords(trans, found)}`];
  if (found.not_compared.length > 0) {
    sentences.push(
      trans._n(
        '%1 part was not compared.',
        '%1 parts were not compared.',
        found.not_compared.length + (found.outcome === 'not_compared' ? found.left_out : 0)
      )
    );
  }
  sentences.push(trans.__('Compared %1 on %2.', formatBytes(found.bytes), rankWords(trans, ranks)));
  return sentences.join(' ');
}

/** How many tensors and other values are the same. */
function countWords(trans: Trans, { tensors, sharded, values, differences }: IComparison): string {
  const paths = (isValue: boolean): number =>
    new Set(
      differences
        .filter(({ what, shape }) => (what === 'value' || (what === 'missing' && shape.length === 0)) === isValue)
        .map(({ path }) => path)
    ).size;
  const [odd, oddValues] = [paths(false), paths(true)];
  const sentences: string[] = [];
  if (tensors > 0) {
    const equal = trans._n('%1 is equal', '%1 are equal', Math.max(0, tensors - odd));
    sentences.push(
      odd > 0
        ? trans._n('%1 of %2 tensors differs, %3.', '%1 of %2 tensors differ, %3.', odd, tensors, equal)
        : trans._n('%1 tensor, equal on all of them.', 'all %1 tensors are equal.', tensors)
    );
  }
  if (sharded > 0) {
    sentences.push(
      trans._n(
        '%1 of them is divided over ranks, as its placement says.',
        '%1 of them are divided over ranks, as their placement says.',
        sharded
      )
    );
  }
  if (oddValues > 0) {
    sentences.push(trans._n('%1 other value differs.', '%1 other values differ.', oddValues));
  } else if (values > 0) {
    sentences.push(trans._n('%1 other value is equal.', '%1 other values are equal.', values));
  }
  return sentences.join(' ') || trans.__('nothing was compared.');
}

/** How many elements of a tensor differ, or what else does. */
export function elementWords(trans: Trans, one: ITensorDifference): string {
  if (one.what === 'missing') {
    return trans.__('missing');
  }
  if (one.what !== 'values') {
    const words = trans.__('%1, not %2', one.found, one.expected || trans.__('as on the others'));
    return one.what === 'shape' ? trans.__('another shape or dtype: %1', words) : words;
  }
  if (one.compared === 0) {
    return trans.__('not compared');
  }
  return one.different === 0
    ? trans.__('after the first %1 of %2, which are equal', one.compared, one.elements)
    : trans.__('%1 of %2', one.different, one.compared);
}

/** The greatest difference of an element, in three digits. */
export function mostWords(trans: Trans, { max_abs: most, nonfinite }: ITensorDifference): string {
  if (most === 0 && !nonfinite) {
    return trans.__('the sign of zero alone');
  }
  const number = most === null ? '' : String(Number(most.toPrecision(3)));
  return [number, nonfinite ? trans.__('nan or inf') : ''].filter(Boolean).join(', ');
}
