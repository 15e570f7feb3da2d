/**
 * Rank expressions: "all", "0-3,7", "::2", "!0", "node:1". Parsed, never evaluated. The Python counterpart is
 * jupyter_dist/protocol/ranks.py; both run rank_expressions.json and host_expressions.json of tests/vectors.
 */
import { DistError } from '../../services/errors';
import { expandRanks, span } from '../../services/ranksets';
import { translation } from '../../services/translation';
import { firstCharacters, numCharacters, WHITE } from './characters';

export { countRanks, expandRanks, includesRank, isRankSet, lowestRank, MAX_RANKS } from '../../services/ranksets';

export const MAX_EXPRESSION_LENGTH = 1000;

const SPACES = new RegExp(`[${WHITE}]+`, 'g');
const AROUND = new RegExp(`^[${WHITE}]+|[${WHITE}]+$`, 'g');

// Seven digits are more than any group has, and keep the arithmetic exact.
const SINGLE = /^-?[0-9]{1,7}$/;
const RANGE = /^([0-9]{1,7})-([0-9]{1,7})$/;
const NODE = /^node:([0-9]{1,7})$/;
const SLICE = /^(-?[0-9]{1,7})?:(-?[0-9]{1,7})?(?::(-?[0-9]{1,7})?)?$/;

/** A machine of a group, with the canonical expression of its ranks. */
export interface IPlace {
  readonly host: string | null;
  readonly ranks: string;
}

/** What the ranks of a group depend on. */
export interface IShape {
  world_size: number;
  nodes?: readonly IPlace[];
}

/**
 * The ranks that an expression names in a group, sorted, each once. It may
 * name hosts.
 *
 * Throws a DistError `bad_ranks` when it is malformed, names a rank that does
 * not exist, or names none.
 */
export function parseRanks(expression: string, group: IShape): number[] {
  const worldSize = group.world_size;
  if (numCharacters(expression) > MAX_EXPRESSION_LENGTH) {
    const message = translation().__('The rank expression is longer than %1 characters.', MAX_EXPRESSION_LENGTH);
    throw bad(message, worldSize);
  }
  const terms = termsOf(withNodes(expression, group.nodes ?? []));
  if (terms.length === 1 && !terms[0]) {
    throw bad(translation().__('The rank expression is empty.'), worldSize);
  }
  const chosen = new Set(terms[0].startsWith('!') ? span(0, worldSize) : []);
  for (const term of terms) {
    const removes = term.startsWith('!');
    const ranks = termRanks(removes ? term.slice(1) : term, expression, group);
    for (const rank of ranks) {
      if (removes) {
        chosen.delete(rank);
      } else {
        chosen.add(rank);
      }
    }
  }
  if (chosen.size === 0) {
    throw bad(translation().__("'%1' names no rank.", expression.replace(AROUND, '')), worldSize);
  }
  return [...chosen].sort((a, b) => a - b);
}

/**
 * An expression with nodes in the place of hosts' names: "nd1,!2" becomes
 * "node:0,!2". They may be in full or up to the first dot. A name that is an
 * expression itself, such as "all" or "7", keeps its meaning, and so does a
 * short name of several hosts.
 */
export function withNodes(expression: string, nodes: readonly Pick<IPlace, 'host'>[]): string {
  const hosts = nodes.map(({ host }) => host);
  if (!hosts.some(Boolean) || numCharacters(expression) > MAX_EXPRESSION_LENGTH) {
    return expression;
  }
  const terms = termsOf(expression);
  const found = terms.map(term => termWithNodes(term, hosts));
  return found.every((term, index) => term === terms[index]) ? expression : found.join(',');
}

function termWithNodes(term: string, hosts: readonly (string | null)[]): string {
  const not = term.startsWith('!') ? '!' : '';
  const name = term.slice(not.length);
  if (!name || name === 'all' || [SINGLE, RANGE, NODE, SLICE].some(pattern => pattern.test(name))) {
    return term;
  }
  const chosen = hosts.includes(name) ? [name] : hosts.filter(host => host?.split('.', 1)[0] === name);
  if (new Set(chosen).size !== 1) {
    return term;
  }
  return hosts.flatMap((host, node) => (host === chosen[0] ? [`${not}node:${node}`] : [])).join(',');
}

function termsOf(expression: string): string[] {
  const text = expression.replace(SPACES, '');
  return (text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text).split(',');
}

/** The canonical expression of a set of ranks: "0-3,7"; empty for none. */
export function formatRanks(ranks: Iterable<number>): string {
  const ordered = [...new Set(ranks)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < ordered.length; i++) {
    const first = ordered[i];
    while (ordered[i + 1] === ordered[i] + 1) {
      i++;
    }
    const last = ordered[i];
    parts.push(first === last ? `${first}` : `${first}-${last}`);
  }
  return parts.join(',');
}

function termRanks(term: string, expression: string, group: IShape): number[] {
  const worldSize = group.world_size;
  if (term === 'all') {
    return span(0, worldSize);
  }
  if (SINGLE.test(term)) {
    return [existing(Number(term), term, worldSize)];
  }
  const range = RANGE.exec(term);
  if (range) {
    const [first, last] = [range[1], range[2]].map(number => existing(Number(number), term, worldSize));
    if (first > last) {
      const message = translation().__("'%1' is reversed; did you mean '%2-%3'?", term, last, first);
      throw bad(message, worldSize);
    }
    return span(first, last + 1);
  }
  const node = NODE.exec(term);
  if (node) {
    return nodeRanks(Number(node[1]), term, group);
  }
  const slice = SLICE.exec(term);
  if (slice) {
    return sliceRanks(slice, term, worldSize);
  }
  const where = firstCharacters(expression.replace(AROUND, ''), 60);
  throw bad(translation().__("'%1' in '%2' is not a rank expression.", term, where), worldSize);
}

/** The ranks of one machine of the group; a group without nodes has one. */
function nodeRanks(node: number, term: string, { world_size: worldSize, nodes = [] }: IShape): number[] {
  const numNodes = nodes.length || 1;
  if (node >= numNodes) {
    const trans = translation();
    const message =
      numNodes === 1
        ? trans.__("There is no node %1 ('%2'): this group has node 0.", node, term)
        : trans.__("There is no node %1 ('%2'): this group has nodes 0 to %3.", node, term, numNodes - 1);
    throw bad(message, worldSize);
  }
  return nodes.length > 0 ? expandRanks(nodes[node].ranks) : span(0, worldSize);
}

/** The ranks of a Python slice with a positive step. */
function sliceRanks(slice: RegExpExecArray, term: string, worldSize: number): number[] {
  const step = slice[3] === undefined ? 1 : Number(slice[3]);
  if (step < 1) {
    throw bad(translation().__("The step of '%1' must be 1 or more.", term), worldSize);
  }
  const bound = (text: string | undefined, fallback: number): number => {
    if (text === undefined) {
      return fallback;
    }
    const value = Number(text);
    const absolute = value < 0 ? value + worldSize : value;
    return Math.min(Math.max(absolute, 0), worldSize);
  };
  return span(bound(slice[1], 0), bound(slice[2], worldSize), step);
}

function existing(rank: number, term: string, worldSize: number): number {
  const actual = rank < 0 ? rank + worldSize : rank;
  if (actual < 0 || actual >= worldSize) {
    throw bad(translation().__("There is no rank %1 ('%2').", rank, term), worldSize);
  }
  return actual;
}

function bad(message: string, worldSize: number): DistError {
  const trans = translation();
  return new DistError({
    code: 'bad_ranks',
    message,
    hint:
      worldSize === 1
        ? trans.__('This group has rank 0. Write all, 0, 0-3, 0-3,7, ::2, !0 or node:0.')
        : trans.__('This group has ranks 0 to %1. Write all, 0, 0-3, 0-3,7, ::2, !0 or node:0.', worldSize - 1)
  });
}

/** A longer set takes more than two lines beside an output. */
const MAX_SHORT_CHARS = 22;

/** A set of ranks for a narrow column: whole if it is short, else "0,2,…,30" if its ranks are equally far apart, or its beginning and its size: "0,3-4,9,… (11)". */
export function shortRanks(ranks: string): string {
  if (ranks.length <= MAX_SHORT_CHARS) {
    return ranks;
  }
  const all = expandRanks(ranks);
  const [first, second] = all;
  const isRegular = all.every((rank, i) => rank === first + i * (second - first));
  return isRegular
    ? `${first},${second},\u2026,${all[all.length - 1]}`
    : `${ranks.split(',').slice(0, 3).join(',')},\u2026 (${all.length})`;
}
