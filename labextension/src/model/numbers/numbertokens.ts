/**
 * Finds the numbers of a line, so that lines can be compared without them.
 * The Python counterpart is jupyter_dist/parts/curves/tokens.py; both run
 * tests/vectors/lines.json, and their curves tests/vectors/curves.json.
 */
import { WHITE } from '../format/characters';

/** What may differ between ranks in lines that are alike. */
export interface IToken {
  /**
   * A clock (a time, a duration, a date, a version or an address) and a label
   * (a number in a word or behind one such as "rank", or a hash) have an order,
   * but no mean.
   */
  kind: 'number' | 'clock' | 'label' | 'bar';
  text: string;
  /** In seconds if it has a unit of time; NaN for "nan" and for the other kinds. */
  value: number;
  unit: string;
}

export interface ITokens {
  /** Text around the tokens: one more than there are tokens. */
  words: string[];
  tokens: IToken[];
  /** Equal for lines that differ in numbers and in their alignment only. */
  template: string;
}

const COLOR = /\x1b\[[0-9;]*m/g; // eslint-disable-line no-control-regex
const BAR = String.raw`(?<bar>(?<=%)\|[^|]*\|)`;
/** Hashes and identifiers: the commit 3f2a91c. They are compared as a whole. */
const HASH =
  String.raw`(?<![A-Za-z0-9_])(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}` +
  String.raw`|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,})(?![A-Za-z0-9_])`;
const DURATION = String.raw`[0-9]+(?:d|h|min|m)(?: ?[0-9]+(?:\.[0-9]+)?(?:h|min|ms|m|s))+(?![A-Za-z0-9_])`;
const CLOCK =
  String.raw`(?<![A-Za-z0-9_])0x[0-9a-fA-F]+|[0-9]+(?::[0-9]{2})+(?![0-9])(?:[.,][0-9]+)?` +
  String.raw`|[0-9]+(?:[.-][0-9]+){2,}|${DURATION}`;
const DIGITS =
  String.raw`[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?` +
  String.raw`|(?:[0-9]+\.[0-9]+|[0-9]+\.(?![A-Za-z0-9_])|(?<![A-Za-z0-9_.])\.[0-9]+)(?:[eE][-+]?[0-9]+)?` +
  String.raw`|[0-9]+[eE][-+][0-9]+|[0-9]+(?!\.[0-9])`;
/** What follows makes it a part of a word: 12e4, 1_000, 0.25.pt, 3-gram. A unit does not: 12.5GB/s. */
const ENDS = String.raw`(?![A-Za-z]*[0-9_])(?![._@+-][A-Za-z_])`;
const NOT_FINITE = String.raw`(?<![A-Za-z0-9_])(?:nan|NaN|NAN|inf|Inf|INF|Infinity)(?![A-Za-z0-9_]|[./@+-][A-Za-z_])`;
const NUMBER = String.raw`(?:(?<![A-Za-z0-9_.)\]])[-+])?(?:(?<![A-Za-z_])(?:${DIGITS})${ENDS}|${NOT_FINITE})`;
const UNIT = String.raw`[ \u00a0\u202f]?(?:ns|[\u00b5\u03bcu]s|ms|s|min|h)(?![A-Za-z0-9_/])`;
/** A number inside a word is no number: layers.0.attn, step100.pt, A100-SXM4, v2.5, top5. */
const WORD =
  String.raw`(?<![A-Za-z0-9_])(?:[A-Za-z_][A-Za-z0-9_]*(?:[./@+-][A-Za-z0-9_]+)*` +
  String.raw`|[0-9][A-Za-z0-9_]*(?:[.@+-][A-Za-z0-9_]+)*)`;
const PATTERN = new RegExp(
  `${BAR}|(?<hash>${HASH})|(?<clock>${CLOCK})|(?<number>${NUMBER})(?<unit>${UNIT})?|(?<word>${WORD})`,
  'g'
);
const LABELS = new RegExp(`${HASH}|[0-9]+(?:\\.[0-9]+)*`, 'g');
/** A whole number behind one of these is a name. */
const NAMED = /(?:\b|_)(?:rank|gpu|device|node|host|worker|process|thread|p?id|port|seed)[ :=#([]*$/i;
/** Libraries of devices are matched by how their names are formed, for any vendor. */
const VERSION = new RegExp(
  String.raw`\b(?:cud[a-z]+|[a-z]*ccl|rocm|driver|numpy|python|release|torch|version)[${WHITE}:=/v-]*$`,
  'i'
);
const SPACES = new RegExp(`[${WHITE}]+`, 'g');
const TWO_PARTS = /^[0-9]+\.[0-9]+$/;
const WHOLE = /^[0-9]+$/;
const MAX_BEFORE = 20;

const SECONDS: Record<string, number> = {
  ns: 1e-9,
  us: 1e-6,
  ms: 1e-3,
  s: 1,
  min: 60,
  h: 3600
};

/** Part a line into words and numbers. */
export function tokenize(line: string): ITokens {
  const words: string[] = [];
  const tokens: IToken[] = [];
  let end = 0;
  for (const [start, token] of tokensOf(line)) {
    words.push(line.slice(end, start));
    tokens.push(token);
    end = start + token.text.length;
  }
  words.push(line.slice(end));
  return { words, tokens, template: words.map(withoutAlignment).join('\u0000') };
}

/** Whether it was written with a fraction or an exponent, or is none of the numbers that can be counted to. */
export function isDecimal({ kind, text, value, unit }: IToken): boolean {
  return kind === 'number' && (unit !== '' || /[.eE]/.test(text) || !Number.isFinite(value));
}

/** The unit of the last figure that was printed. */
export function resolutionOf({ text, unit }: IToken): number {
  const [, decimals = '', exponent = '0'] = /^[^.eE]*(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]+))?/.exec(text)!;
  return 10 ** (Number(exponent) - decimals.length) * (SECONDS[unit] ?? 1);
}

/** The tokens of a line, each with its place. */
function* tokensOf(line: string): Iterable<[number, IToken]> {
  // The m of a color is no letter before a number.
  const plain = line.replace(COLOR, color => ' '.repeat(color.length));
  for (const { index, groups } of plain.matchAll(PATTERN)) {
    const { word, number, unit = '', bar, clock, hash } = groups!;
    if (word !== undefined) {
      for (const label of word.matchAll(LABELS)) {
        yield [index + label.index, withoutValue('label', label[0])];
      }
    } else if (number !== undefined) {
      yield [index, numberOf(number, unit, plain.slice(Math.max(0, index - MAX_BEFORE), index))];
    } else {
      yield [index, withoutValue(bar ? 'bar' : clock ? 'clock' : 'label', bar ?? clock ?? hash!)];
    }
  }
}

function withoutValue(kind: IToken['kind'], text: string): IToken {
  return { kind, text, value: NaN, unit: '' };
}

function numberOf(number: string, unit: string, before: string): IToken {
  if (unit === '' && TWO_PARTS.test(number) && VERSION.test(before)) {
    return withoutValue('clock', number);
  }
  if (unit === '' && WHOLE.test(number) && NAMED.test(before)) {
    return withoutValue('label', number);
  }
  const name = unit.trim().replace(/[\u00b5\u03bc]/, 'u');
  const value = valueOf(number) * (SECONDS[name] ?? 1);
  return { kind: 'number', text: number + unit, value, unit: name };
}

function valueOf(text: string): number {
  if (/inf/i.test(text)) {
    return text.startsWith('-') ? -Infinity : Infinity;
  }
  return Number(text.replace(/,/g, ''));
}

function withoutAlignment(word: string): string {
  return word.replace(SPACES, ' ');
}
