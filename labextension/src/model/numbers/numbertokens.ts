/**
 * Finds the numbers of a line, so that lines can be compared without them.
 * The Python counterpart is jupyter_dist/numbers/tokens.py; the curves of
 * both run tests/vectors/curves.json.
 */

/** What may differ between ranks in lines that are alike. */
export interface IToken {
  /** A clock is a time of day, a duration such as 0:42, a date, a version or an address: it has an order, but no mean. */
  kind: 'number' | 'clock' | 'bar';
  text: string;
  /** In seconds if it has a unit of time; NaN for "nan", a clock and a bar. */
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

const COLOR = String.raw`\x1b\[[0-9;]*m`;
const BAR = String.raw`(?<bar>(?<=%)\|[^|]*\|)`;
const CLOCK = String.raw`(?<clock>(?<!\w)0x[0-9a-fA-F]+|\d+(?::\d\d)+(?:[.,]\d+)?|\d+(?:[.-]\d+){2,})`;
// A number in a word is a whole one: layers.0.attn, layer0.weight, step100.pt and the commit 12e4 have no fraction.
const NOT_IN_WORD = String.raw`(?<![A-Za-z_])(?<![A-Za-z_]\.)`;
const FRACTION = String.raw`(?:\d+\.\d+(?!\d|\.[A-Za-z_])|\d+\.(?!\w)|(?<![\w.])\.\d+)(?:[eE][-+]?\d+)?`;
const DIGITS = String.raw`(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|${NOT_IN_WORD}(?:${FRACTION}|\d+[eE][-+]\d+)|\d+)`;
const NUMBER = String.raw`(?<number>(?:(?<![\w.)\]])[-+])?${DIGITS}|(?<!\w)(?:nan|[-+]?inf)(?!\w))`;
const UNIT = String.raw`(?<unit>\s?(?:ns|[µμu]s|ms|s|min|h)(?![\w/]))?`;
const PATTERN = new RegExp(`${COLOR}|${BAR}|${CLOCK}|${NUMBER}${UNIT}`, 'g');

/** Libraries of devices are matched by how their names are formed, for any vendor. */
const VERSION = /\b(?:cud[a-z]+|[a-z]*ccl|rocm|driver|numpy|python|release|torch|version)[\s:=/v-]*$/i;
const TWO_PARTS = /^[0-9]+\.[0-9]+$/;
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
  for (const match of line.matchAll(PATTERN)) {
    const token = tokenOf(match.groups!, line.slice(Math.max(0, match.index - MAX_BEFORE), match.index));
    if (token) {
      words.push(line.slice(end, match.index));
      tokens.push(token);
      end = match.index + match[0].length;
    }
  }
  words.push(line.slice(end));
  return { words, tokens, template: words.map(withoutAlignment).join('\u0000') };
}

/** Whether it was written with a fraction or an exponent, or is none of the numbers that can be counted to. */
export function isDecimal({ kind, text, value, unit }: IToken): boolean {
  return kind === 'number' && (unit !== '' || /[.eE]/.test(text) || !Number.isFinite(value));
}

function tokenOf(groups: Record<string, string | undefined>, before: string): IToken | null {
  const { bar, clock, number, unit = '' } = groups;
  if (number === undefined) {
    const text = bar ?? clock;
    return text === undefined ? null : { kind: bar ? 'bar' : 'clock', text, value: NaN, unit: '' };
  }
  if (unit === '' && TWO_PARTS.test(number) && VERSION.test(before)) {
    return { kind: 'clock', text: number, value: NaN, unit: '' };
  }
  const name = unit.trim().replace(/[µμ]/, 'u');
  const value = valueOf(number) * (SECONDS[name] ?? 1);
  return { kind: 'number', text: number + unit, value, unit: name };
}

function valueOf(text: string): number {
  const word = text.replace(/^[-+]/, '');
  if (word === 'inf') {
    return text.startsWith('-') ? -Infinity : Infinity;
  }
  return Number(text.replace(/,/g, ''));
}

function withoutAlignment(word: string): string {
  return word.replace(/\s+/g, ' ');
}
