/** What differs between the ranks of a cell, in words for the ruler; the worst first. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { shortened } from '../../../model/format/characters';
import { groupedBy } from '../../../model/format/grouped';
import { formatRanks } from '../../../model/format/ranks';
import { formatSeconds } from '../../../model/format/quantities';
import { streamText } from '../../../model/executions/executionview';
import { isLate } from '../../../model/outputs/lateness';
import { differs } from '../model/arrange';
import type { ExecutionState, IVariable } from '../../../services/protocol';
import { rankSetLabel } from '../../../widgets/rankoutput/items/itemrow';
import { knownSeconds, type IShown, type IShownItem } from '../../../widgets/rankoutput/items/shown';
import { stateWord } from '../../../widgets/states/statewords';

export type DifferenceKind = 'error' | 'check' | 'late' | 'output' | 'variable';

export interface IDifference {
  readonly kind: DifferenceKind;
  readonly words: string;
}

const FAILED: ReadonlySet<ExecutionState> = new Set(['error', 'lost', 'interrupted']);
const MAX_CHARS = 60;

/** How ranks differ in a cell: in its end, its output and its time, and what parts have found. */
export function differencesIn(
  trans: TranslationBundle,
  shown: IShown,
  found: readonly string[]
): readonly IDifference[] {
  const all: (IDifference | null)[] = [
    failure(trans, shown),
    ...found.map(words => ({ kind: 'check', words }) as const),
    lateness(trans, shown),
    output(trans, shown)
  ];
  return all.filter(one => one !== null);
}

/** A variable that ranks do not have alike; null if they have. */
export function differenceOf(trans: TranslationBundle, variable: IVariable): IDifference | null {
  if (!differs(variable)) {
    return null;
  }
  const { name, rows, missing } = variable;
  const values = rows.map(({ value, type, shape, ranks }) =>
    trans.__('%1 on %2', value || `${type} ${shape}`.trim(), rankSetLabel(trans, ranks))
  );
  const lacking = missing ? [trans.__('missing on %1', rankSetLabel(trans, missing))] : [];
  return { kind: 'variable', words: trans.__('%1 differs: %2', name, [...values, ...lacking].join(', ')) };
}

function failure(trans: TranslationBundle, { perRank, items }: IShown): IDifference | null {
  const failed = perRank.filter(({ status }) => FAILED.has(status));
  if (failed.length === 0 || (failed.length === perRank.length && isAlike(perRank))) {
    return null;
  }
  const words = [...groupedBy(failed, ({ status }) => status)].map(([status, ranks]) =>
    trans.__('%1 %2', rankSetLabel(trans, formatRanks(ranks.map(({ rank }) => rank))), stateWord(trans, status))
  );
  const error = items.map(textOfError).find(Boolean);
  return { kind: 'error', words: [words.join(', '), error].filter(Boolean).join(': ') };
}

function isAlike(perRank: IShown['perRank']): boolean {
  return perRank.every(({ status }) => status === perRank[0].status);
}

function lateness(trans: TranslationBundle, { perRank }: IShown): IDifference | null {
  if (!isLate(knownSeconds(perRank))) {
    return null;
  }
  const sorted = perRank.filter(({ seconds }) => seconds !== null).sort((a, b) => b.seconds! - a.seconds!);
  const [slow, fast] = [sorted[0], sorted[sorted.length - 1]].flatMap(({ rank, seconds }) =>
    trans.__('%1 took %2', rankSetLabel(trans, String(rank)), formatSeconds(seconds!))
  );
  return { kind: 'late', words: `${slow}, ${fast}` };
}

/** The first thing that not all ranks have printed or shown. */
function output(trans: TranslationBundle, { items, ranks }: IShown): IDifference | null {
  const odd = items.find(item => item.ranks !== ranks && !textOfError(item));
  if (!odd) {
    return null;
  }
  const label = rankSetLabel(trans, odd.ranks);
  const line = firstLine(odd);
  return {
    kind: 'output',
    words: line ? trans.__('only %1 printed: %2', label, line) : trans.__('only %1 printed or showed something', label)
  };
}

function textOfError({ output }: IShownItem): string {
  return output?.output_type === 'error' ? shortened(`${output.ename}: ${output.evalue}`, MAX_CHARS) : '';
}

function firstLine({ output }: IShownItem): string {
  const isText = output?.output_type === 'stream';
  const text = isText ? streamText(output as Parameters<typeof streamText>[0]).trimStart() : '';
  return shortened(text.split('\n', 1)[0].trimEnd(), MAX_CHARS);
}
