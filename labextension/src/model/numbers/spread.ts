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
  /** Of two or three ranks: what each wrote, which is as short as a summary. Null of more ranks. */
  few: IValue[] | null;
  /** The mean of the finite numbers and their standard deviation; null where a mean would be no rank's number, even roughly. */
  mean: string | null;
  deviation: string | null;
  /** The least and the greatest, rounded to the digits in which they differ; null if no number is finite. */
  least: IValue | null;
  most: IValue | null;
  /** nan and inf. */
  notFinite: IValue[];
  /** By rank, as written. */
  values: IValue[];
}

/** A number as one rank wrote it. */
export interface IWritten {
  rank: number;
  token: IToken;
}

const MAX_FIGURES = 5;
/** Up to so many ranks, their values are shown in place of a summary. */
const MAX_FEW = 3;
/** A mean stands for values that deviate from it by at most this share of it. */
const MAX_DEVIATION = 0.2;
/** Figures that a value keeps at least: as an end of a range, and where it is shown instead of a summary. */
const END_FIGURES = 2;
const FEW_FIGURES = 6;

/** Sum up one of the `numPlaces` places at which a line differs; each of them can raise an alarm. */
export function spreadOf(written: readonly IWritten[], numPlaces = 1): ISpread {
  const finite = written.filter(({ token }) => hasOrder(token));
  const outliers = new Set(outliersAmong(finite, FALSE_ALARMS / numPlaces));
  const describe = (one: IWritten, text = one.token.text): IValue => ({
    rank: one.rank,
    text,
    isOdd: !hasOrder(one.token) || outliers.has(one)
  });
  const tokens = finite.map(({ token }) => token);
  const deviation = deviationOf(tokens);
  const shortly = (one: IWritten, figures: number): IValue => describe(one, rounded(one.token, deviation, figures));
  const values = written.map(one => describe(one));
  const ordered = [...finite].sort((a, b) => compare(a.token, b.token) || a.rank - b.rank);
  return {
    few: written.length <= MAX_FEW ? written.map(one => shortly(one, FEW_FIGURES)) : null,
    ...meanOf(tokens, deviation),
    least: ordered.length > 0 ? shortly(ordered[0], END_FIGURES) : null,
    most: ordered.length > 0 ? shortly(lastLike(ordered), END_FIGURES) : null,
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

/** The standard deviation, in the unit that was written; 0 where there is none, or it means nothing. */
function deviationOf(tokens: readonly IToken[]): number {
  if (tokens.length < 2 || !tokens.some(isDecimal) || new Set(tokens.map(({ unit }) => unit)).size > 1) {
    return 0;
  }
  const numbers = tokens.map(asWritten);
  const mean = average(numbers);
  const deviation = Math.sqrt(average(numbers.map(value => (value - mean) ** 2)));
  return Number.isFinite(deviation) ? deviation : 0;
}

function meanOf(tokens: readonly IToken[], deviation: number): Pick<ISpread, 'mean' | 'deviation'> {
  const mean = average(tokens.map(asWritten));
  if (deviation === 0 || deviation > MAX_DEVIATION * Math.abs(mean)) {
    return { mean: null, deviation: null };
  }
  const unit = /[^\d]*$/.exec(tokens[0].text.replace(/\.$/, ''))![0];
  const format = tokens.some(({ text }) => /[eE]/.test(text)) ? exponential(deviation) : fixed(tokens, deviation);
  const shown = tokens.some(({ text }) => text.includes(',')) ? grouped(format(mean)) : format(mean);
  return { mean: shown + unit, deviation: format(deviation) };
}

/** Without its unit, which is added again. */
function asWritten({ text }: IToken): number {
  return parseFloat(text.replace(/,/g, ''));
}

function average(numbers: readonly number[]): number {
  return numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}

/** Two figures of the deviation, and the mean and the ends as exactly as that. */
function fixed(tokens: readonly IToken[], deviation: number): (value: number) => string {
  const written = Math.max(...tokens.map(({ text }) => /\.(\d*)/.exec(text)?.[1].length ?? 0));
  const decimals = Math.min(Math.max(1 - magnitude(deviation), 0), written + 1);
  return value => value.toFixed(decimals);
}

function exponential(deviation: number): (value: number) => string {
  return value => {
    const figures = Math.max(1 + magnitude(value) - magnitude(deviation), 0);
    const [digits, exponent] = value.toExponential(Math.min(figures, MAX_FIGURES)).split('e');
    // As Python writes it.
    return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, '0')}`;
  };
}

/** The number as written, without figures beyond the second of the deviation; it keeps so many figures at least. */
function rounded(token: IToken, deviation: number, figures: number): string {
  const [, whole, fraction, rest] = /^([-+]?[0-9,]*)\.([0-9]+)(.*)$/s.exec(token.text) ?? [];
  if (fraction === undefined || deviation === 0 || token.kind !== 'number') {
    return token.text;
  }
  const [sign] = /^[-+]?/.exec(whole)!;
  const value = Math.abs(asWritten({ ...token, text: `${whole}.${fraction}` }));
  const exponent = Number(/^[eE]([-+]?[0-9]+)|$/.exec(rest)?.[1] ?? 0);
  const own = value > 0 ? figures - 1 - magnitude(value) : 0;
  const decimals = Math.max(1 - magnitude(deviation) + exponent, own, 1);
  if (fraction.length <= decimals) {
    return token.text;
  }
  const plain = value.toFixed(decimals);
  const shown = whole.includes(',') ? grouped(plain) : /\d/.test(whole) ? plain : plain.replace(/^0/, '');
  return `${sign}${shown}${rest}`;
}

/** 1,500.5 */
function grouped(text: string): string {
  return text.replace(/\B(?=([0-9]{3})+(?:\.|$))(?<!\.[0-9]*)/g, ',');
}

function magnitude(value: number): number {
  return value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
}
