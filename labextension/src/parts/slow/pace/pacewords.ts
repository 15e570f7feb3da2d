/** The texts about where the time of a cell goes. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatPercent, formatStepTime } from '../../../model/format/quantities';
import type { IPace, IRankPace, IStepTimes } from '../../../services/protocol';
import { inWords } from '../../../services/words';

export const PARTS = ['compute', 'communicate', 'wait', 'input'] as const;

export type PacePart = (typeof PARTS)[number];

/** A part below this is not mentioned. */
const LEAST = 0.005;

export function partLabel(trans: TranslationBundle, part: PacePart): string {
  const labels: Record<PacePart, string> = {
    compute: trans.__('compute'),
    communicate: trans.__('communicate'),
    wait: trans.__('wait'),
    input: trans.__('input')
  };
  return labels[part];
}

export function partTitle(trans: TranslationBundle, part: PacePart): string {
  const titles: Record<PacePart, string> = {
    compute: trans.__('Everything outside of collectives and of the DataLoader'),
    communicate: trans.__('In collectives whose ranks had all arrived'),
    wait: trans.__('In collectives, for ranks that came later'),
    input: trans.__('For data: in a DataLoader')
  };
  return titles[part];
}

export function shareWords(share: number): string {
  return formatPercent(100 * share);
}

/** The rank that a rank waits for: "rank 1"; empty if it hardly waits. */
export function waitedFor(trans: TranslationBundle, { wait, waits_for: rank }: IRankPace): string {
  return rank === null || wait < LEAST ? '' : trans.__('rank %1', rank);
}

/** "Where its time went: compute 61 %, wait 39 % (most of it for rank 1). A step took 61 ms." */
export function paceHint(trans: TranslationBundle, pace: IPace | undefined): string {
  if (!pace || pace.ranks.length === 0) {
    return '';
  }
  const mean = (part: PacePart): number => pace.ranks.reduce((sum, row) => sum + row[part], 0) / pace.ranks.length;
  const shares = PARTS.filter(part => mean(part) >= LEAST).map(part => {
    const words = `${partLabel(trans, part)} ${shareWords(mean(part))}`;
    const rank = part === 'wait' ? mostWaitedFor(pace.ranks) : null;
    return rank === null ? words : trans.__('%1 (most of it for rank %2)', words, rank);
  });
  const sentences = [
    ...pace.causes.map(({ message, message_words: said }) => inWords(trans, message, said)),
    trans.__('Where its time went, on average of the ranks: %1.', shares.join(', ')),
    ...(pace.steps ? [trans.__('A step took %1.', formatStepTime(pace.steps.seconds))] : [])
  ];
  return sentences.join('\n');
}

function mostWaitedFor(rows: readonly IRankPace[]): number | null {
  const waits = new Map<number, number>();
  for (const { waits_for: rank, wait } of rows) {
    if (rank !== null) {
      waits.set(rank, (waits.get(rank) ?? 0) + wait);
    }
  }
  const [first] = [...waits].sort(([, a], [, b]) => b - a);
  return first ? first[0] : null;
}

/** "A step takes 61 ms and has 2 collectives. It took between 58 ms and 71 ms in the course of the cell." */
export function stepWords(trans: TranslationBundle, steps: IStepTimes): string {
  const { seconds, collectives, trend } = steps;
  const each =
    collectives === null
      ? trans.__('A step takes %1.', formatStepTime(seconds))
      : trans._n(
          'A step takes %2 and has %1 collective.',
          'A step takes %2 and has %1 collectives.',
          collectives,
          formatStepTime(seconds)
        );
  const [least, most] = [Math.min(...trend), Math.max(...trend)].map(formatStepTime);
  const range = trans.__('It took between %1 and %2 in the course of the cell.', least, most);
  return least === most ? each : `${each} ${range}`;
}
