/**
 * Reads what a notebook file says of a rank cell. A file may come from anybody: whatever is in it is checked here, once,
 * and what does not pass is shown as the text that stands beside it.
 */
import type { IOutput } from '@jupyterlab/nbformat';
import {
  IElided,
  IRanksBundle,
  IRanksStatus,
  ISavedItem,
  RANKS_MIME
} from '../../services/protocol';
import { countRanks, isRankSet, MAX_RANKS } from '../format/ranks';

/** As the server makes them: `secrets.token_hex` behind a letter. */
const GROUP_ID = /^g-[0-9a-f]{1,32}$/;
const EXECUTION_ID = /^e-[0-9a-f]{1,32}$/;
/** A newer server may know more states than this page. */
const STATE = /^[a-z_]{1,32}$/;
/** Names and sentences of a file; those of the server are far shorter. */
const MAX_TEXT = 65536;
/** More than the server keeps in a view, by far. */
const MAX_ITEMS = 100000;

/** The bundle in an output, if it is one of ours and can be read. */
export function readBundle(output: IOutput | undefined): IRanksBundle | null {
  const data = output?.data;
  return isObject(data) ? parseBundle(data[RANKS_MIME]) : null;
}

/** A bundle from a file, or null when anything in it is not what the server would have written. */
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
    ...(bundle.error ? { error: bundle.error } : {})
  };
}

/** What became of it, and what was said. */
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

/** Whose it is: what the page would ask the server about. */
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
  return (
    isObject(value) &&
    isRankSet(value.ranks) &&
    matches(value.status, STATE) &&
    isTime(value.seconds ?? null)
  );
}

function isItem(value: unknown): value is ISavedItem {
  if (!isObject(value) || !isRankSet(value.ranks)) {
    return false;
  }
  return value.elided === undefined ? isOutput(value.output) : isElided(value.elided);
}

function isElided(value: unknown): value is IElided {
  return isObject(value) && isCount(value.bytes) && isCount(value.lines);
}

/** An output of nbformat that ranks can have. */
function isOutput(value: unknown): boolean {
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

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function matches(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT;
}

function isList<T>(value: unknown, isOne: (one: unknown) => one is T): value is T[] {
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

/** Seconds, or null. */
function isTime(value: unknown): value is number | null {
  return value === null || (typeof value === 'number' && Number.isFinite(value));
}
