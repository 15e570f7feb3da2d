/** Sums up the numbers that ranks wrote at one place of a line. Pure. */
import { isDecimal, IToken, resolutionOf } from './numbertokens';
import { FALSE_ALARMS, outliersOf } from './outliers';

export interface IValue {
  rank: number;
  text: string;
  /** It is nan or inf, or farther from the other ranks' numbers than noise. */
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

const MAX_FIGURES = 4;

/** Sum up one of the `numPlaces` places at which a line differs; each of them can raise an alarm. */
export function spreadOf(written: readonly IWritten[], numPlaces = 1): ISpread {
  const finite = written.filter(({ token }) => hasOrder(token));
  const outliers = new Set(outliersAmong(finite, FALSE_ALARMS / numPlaces));
  const describe = (one: IWritten): IValue => ({
    rank: one.rank,
    text: one.token.text,
    isOdd: !hasOrder(one.token) || outliers.has(one)
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

function outliersAmong(written: readonly IWritten[], falseAlarms: number): IWritten[] {
  const tokens = written.map(({ token }) => token);
  const areWhole = !tokens.some(isDecimal);
  const resolution = Math.max(...tokens.map(resolutionOf));
  const isOutlier = outliersOf({ values: tokens.map(({ value }) => value), resolution, areWhole }, falseAlarms);
  return written.filter((_, i) => isOutlier[i]);
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
