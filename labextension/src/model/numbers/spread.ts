/** Sums up the numbers that ranks wrote at one place of a line. Pure. */
import { isDecimal, IToken } from './numbertokens';

export interface IValue {
  rank: number;
  text: string;
  /** It is far from what the other ranks wrote. */
  isOdd: boolean;
}

/** What ranks wrote at one place of a line. */
export interface ISpread {
  /** The mean of the finite numbers and their standard deviation; null where they mean nothing. */
  mean: string | null;
  deviation: string | null;
  /** The least and the greatest; null if no number is finite. */
  least: IValue | null;
  most: IValue | null;
  /** nan and inf. */
  notFinite: IValue[];
  /** By rank. */
  values: IValue[];
}

/** A number as one rank wrote it. */
export interface IWritten {
  rank: number;
  token: IToken;
}

/** With fewer ranks, it cannot be decided which rank is the odd one. */
const MIN_FOR_ODD = 4;
/** In standard deviations, which are estimated from the median deviation. */
const ODD_DEVIATIONS = 6;
const DEVIATION_OF_MEDIAN = 1.4826;
/** If more than this share of the ranks wrote the same, the others are odd. */
const AGREEING_SHARE = 0.75;
const MAX_FIGURES = 4;

export function spreadOf(written: readonly IWritten[]): ISpread {
  const finite = written.filter(({ token }) => hasOrder(token));
  const isOdd = oddness(finite.map(({ token }) => token.value));
  const describe = ({ rank, token }: IWritten): IValue => ({
    rank,
    text: token.text,
    isOdd: !hasOrder(token) || isOdd(token.value)
  });
  const values = written.map(describe);
  const ordered = [...finite].sort((a, b) => compare(a.token, b.token) || a.rank - b.rank);
  return {
    ...meanOf(finite.map(({ token }) => token)),
    least: ordered.length > 0 ? describe(ordered[0]) : null,
    most: ordered.length > 0 ? describe(lastLike(ordered)) : null,
    notFinite: values.filter((_, i) => !hasOrder(written[i].token)),
    values
  };
}

/** Whether it can be compared: nan and inf are named apart. */
function hasOrder({ kind, value }: IToken): boolean {
  return kind !== 'number' || Number.isFinite(value);
}

/** The lowest rank of those with the greatest value. */
function lastLike(ordered: readonly IWritten[]): IWritten {
  const last = ordered[ordered.length - 1];
  return ordered.find(({ token }) => compare(token, last.token) === 0)!;
}

function compare(a: IToken, b: IToken): number {
  if (a.kind === 'number' && b.kind === 'number') {
    return a.value - b.value;
  }
  // Clocks: the longer one is later.
  return a.text.length - b.text.length || (a.text < b.text ? -1 : Number(a.text > b.text));
}

function oddness(values: readonly number[]): (value: number) => boolean {
  if (values.length < MIN_FOR_ODD || values.some(Number.isNaN)) {
    return () => false;
  }
  const middle = median(values);
  const deviation = median(values.map(value => Math.abs(value - middle))) * DEVIATION_OF_MEDIAN;
  if (deviation > 0) {
    return value => Math.abs(value - middle) > ODD_DEVIATIONS * deviation;
  }
  const agreeing = values.filter(value => value === middle).length;
  return value => value !== middle && agreeing >= AGREEING_SHARE * values.length;
}

function median(values: readonly number[]): number {
  const ordered = [...values].sort((a, b) => a - b);
  return ordered[Math.floor((ordered.length - 1) / 2)];
}

function meanOf(tokens: readonly IToken[]): Pick<ISpread, 'mean' | 'deviation'> {
  const none = { mean: null, deviation: null };
  if (tokens.length < 2 || !tokens.some(isDecimal) || new Set(tokens.map(({ unit }) => unit)).size > 1) {
    return none;
  }
  // As written: a unit is added again below.
  const numbers = tokens.map(({ text }) => parseFloat(text.replace(/,/g, '')));
  const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  const deviation = Math.sqrt(numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0) / numbers.length);
  if (!Number.isFinite(deviation) || deviation === 0) {
    return none;
  }
  const unit = /[^\d]*$/.exec(tokens[0].text.replace(/\.$/, ''))![0];
  const format = tokens.some(({ text }) => /[eE]/.test(text)) ? exponential(mean, deviation) : fixed(tokens, deviation);
  return { mean: format(mean) + unit, deviation: format(deviation) };
}

/** One figure of the deviation, and the mean as exactly as that. */
function fixed(tokens: readonly IToken[], deviation: number): (value: number) => string {
  const written = Math.max(...tokens.map(({ text }) => /\.(\d*)/.exec(text)?.[1].length ?? 0));
  const decimals = Math.min(Math.max(-magnitude(deviation), 0), written + 1);
  return value => value.toFixed(decimals);
}

function exponential(mean: number, deviation: number): (value: number) => string {
  const figures = Math.min(Math.max(magnitude(mean) - magnitude(deviation), 0), MAX_FIGURES);
  return value => {
    const [digits, exponent] = value.toExponential(value === deviation ? 0 : figures).split('e');
    // As Python writes it.
    return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, '0')}`;
  };
}

function magnitude(value: number): number {
  return value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
}
