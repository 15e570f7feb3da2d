/**
 * Reads the bundle of a rank cell from a notebook file. A file is untrusted: its content is validated here, once, and an
 * invalid bundle is shown as its fallback text.
 */
import type { IOutput } from '@jupyterlab/nbformat';
import { IElided, IRanksBundle, IRanksStatus, ISavedItem, RANKS_MIME } from '../../services/protocol';
import { countRanks, isRankSet, MAX_RANKS } from '../format/ranks';

/** As created by the server: `secrets.token_hex` after a letter. */
const GROUP_ID = /^g-[0-9a-f]{1,32}$/;
const EXECUTION_ID = /^e-[0-9a-f]{1,32}$/;
const CHECKSUM = /^[0-9a-f]{8}$/;
/** A newer server may have more states than this page knows. */
const STATE = /^[a-z_]{1,32}$/;
/** Limit on names and sentences in a file; the server's are far shorter. */
const MAX_TEXT = 65536;
/** Far more than the server keeps in a view. */
const MAX_ITEMS = 100000;

/** The bundle in an output, if it is ours and valid; some of its items may be in other outputs of the cell. */
export function readBundle(output: IOutput | undefined): IRanksBundle | null {
  const data = output?.data;
  return isObject(data) ? parseBundle(data[RANKS_MIME]) : null;
}

/** A bundle from a file, or null if we could not have written it. */
export function parseBundle(value: unknown): IRanksBundle | null {
  if (!isObject(value) || !hasIdentity(value) || !hasContent(value)) {
    return null;
  }
  const bundle = value as unknown as IRanksBundle;
  const { id, name, world_size } = bundle.group;
  return {
    version: 1,
    group: { id, name, world_size },
    execution_id: bundle.execution_id,
    ranks: bundle.ranks,
    state: bundle.state,
    statuses: bundle.statuses,
    started_at: bundle.started_at ?? null,
    ended_at: bundle.ended_at ?? null,
    items: bundle.items,
    ...(bundle.error ? { error: bundle.error } : {}),
    ...(matches(bundle.code_checksum, CHECKSUM) ? { code_checksum: bundle.code_checksum } : {})
  };
}

/** Whether its result and output are valid. */
function hasContent({ statuses, items, started_at, ended_at, error }: Fields): boolean {
  return (
    isTime(started_at ?? null) &&
    isTime(ended_at ?? null) &&
    isList(statuses, isStatus) &&
    statuses.reduce((sum, { ranks }) => sum + countRanks(ranks), 0) <= MAX_RANKS &&
    isList(items, isItem) &&
    (error === undefined || error === null || isError(error))
  );
}

/** Whether its ids are valid, which the page sends to the server. */
function hasIdentity({ version, group, execution_id, ranks, state }: Fields): boolean {
  return (
    version === 1 &&
    isObject(group) &&
    matches(group.id, GROUP_ID) &&
    isText(group.name) &&
    isCount(group.world_size) &&
    group.world_size <= MAX_RANKS &&
    matches(execution_id, EXECUTION_ID) &&
    isRankSet(ranks) &&
    matches(state, STATE)
  );
}

function isStatus(value: unknown): value is IRanksStatus {
  return isObject(value) && isRankSet(value.ranks) && matches(value.status, STATE) && isTime(value.seconds ?? null);
}

function isItem(value: unknown): value is ISavedItem {
  if (!isObject(value) || !isRankSet(value.ranks)) {
    return false;
  }
  if (value.part !== undefined) {
    return isCount(value.part) && value.part > 0 && value.part <= MAX_ITEMS;
  }
  return value.elided === undefined ? isOutput(value.output) : isElided(value.elided);
}

function isElided(value: unknown): value is IElided {
  return isObject(value) && isCount(value.bytes) && isCount(value.lines);
}

/** Whether it is an nbformat output that ranks can produce. */
export function isOutput(value: unknown): boolean {
  if (!isObject(value)) {
    return false;
  }
  switch (value.output_type) {
    case 'stream':
      return (value.name === 'stdout' || value.name === 'stderr') && isLines(value.text);
    case 'error':
      return typeof value.ename === 'string' && typeof value.evalue === 'string' && isStrings(value.traceback);
    case 'display_data':
    case 'execute_result':
      return isObject(value.data) && (value.metadata === undefined || isObject(value.metadata));
    default:
      return false;
  }
}

function isError(value: unknown): boolean {
  return isObject(value) && isText(value.code) && isText(value.message) && isText(value.hint ?? '');
}

type Fields = Record<string, unknown>;

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function matches(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value);
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT;
}

export function isList<T>(value: unknown, isOne: (one: unknown) => one is T): value is T[] {
  return Array.isArray(value) && value.length <= MAX_ITEMS && value.every(isOne);
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(line => typeof line === 'string');
}

function isLines(value: unknown): boolean {
  return typeof value === 'string' || isStrings(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Whether it is a time in seconds, or null. */
export function isTime(value: unknown): value is number | null {
  return value === null || (typeof value === 'number' && Number.isFinite(value));
}
