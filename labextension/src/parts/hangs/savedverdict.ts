/** The verdict that a kernel has put into the output of a cell that runs: a file, in which anybody may have written. */
import { isRankSet } from '../../model/format/ranks';
import { isList, isObject, isText, isTime } from '../../model/outputs/parsebundle';
import type { IVerdict, IVerdictPart } from '../../services/protocol';

const REASONS: readonly unknown[] = [
  'missing',
  'dead',
  'order',
  'mismatch',
  'shapes',
  'busy',
  'still',
  'cut'
] satisfies IVerdict['reason'][];
const RANK_STATES: readonly unknown[] = ['waits', 'runs', 'idle', 'dead', 'unknown'] satisfies IVerdictPart['state'][];

/** The verdict in a bundle of a kernel, in English and without what needs a server; null if it has none that is valid. */
export function readVerdict(bundle: unknown): IVerdict | null {
  const verdict = isObject(bundle) ? bundle.verdict : null;
  if (!isVerdict(verdict)) {
    return null;
  }
  const { kind, reason, message, since, paths } = verdict;
  const read = ({ ranks, state, place, call }: IVerdictPart): IVerdictPart => ({
    ranks,
    state,
    place: place ?? null,
    call: call ?? null
  });
  const parts = { waiting: verdict.waiting.map(read), needed: verdict.needed.map(read) };
  return { kind, reason, message, since, ...parts, ...(paths ? { paths } : {}) };
}

function isVerdict(value: unknown): value is IVerdict {
  return (
    isObject(value) &&
    (value.kind === 'cannot_end' || value.kind === 'waits') &&
    REASONS.includes(value.reason) &&
    isText(value.message) &&
    typeof value.since === 'number' &&
    isTime(value.since) &&
    isList(value.waiting, isPart) &&
    isList(value.needed, isPart) &&
    isText(value.paths ?? '')
  );
}

function isPart(value: unknown): value is IVerdictPart {
  const isRanks = isObject(value) && isRankSet(value.ranks) && RANK_STATES.includes(value.state);
  return isRanks && isText(value.place ?? '') && isText(value.call ?? '');
}
