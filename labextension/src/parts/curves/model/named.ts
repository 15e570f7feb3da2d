/**
 * Finds the numbers of a line that have a name, as in "step 23 loss 0.087". Pure.
 * The Python counterpart is jupyter_dist/parts/curves/reading.py; both run tests/vectors/curves.json.
 */
import { numCharacters, WHITE } from '../../../model/format/characters';
import { isDecimal, IToken, tokenize } from '../../../model/numbers/numbertokens';

/** One number of a line. */
export interface INamed {
  name: string;
  /** In seconds if it was written with a unit of time. */
  value: number;
  unit: string;
  /** Whether it was written with a fraction, an exponent or a unit; whole numbers alone are seldom measured. */
  isMeasured: boolean;
}

/** The named numbers of a line of output. */
export interface INamedNumbers {
  /** The name and the number of a step, an iteration or an epoch. */
  step: { name: string; value: number } | null;
  values: INamed[];
}

/** Longer lines are no lines of numbers. */
const MAX_LINE = 1000;
/** A name is in so many characters before its number. */
const MAX_NAME = 60;

const COLORS = /\x1b\[[0-9;]*m/g; // eslint-disable-line no-control-regex
const BETWEEN = new RegExp(String.raw`[${WHITE}=:'"()[\]{}>-]*$`);
const TENSOR = new RegExp(`(?:^|[${WHITE}=:(])tensor$`);
const NAME = /[A-Za-z_][\w.@/%-]*(?: [A-Za-z_][\w.@/%-]*){0,2}$/;
const UNIT_BEHIND = /^[A-Za-z%/]+/;
const UNIT_BEFORE = new RegExp(String.raw`[ \t](\([A-Za-z%/]{1,12}\))[${WHITE}=:]*$`);
const STEP = /(?:^|[ _.])(?:steps?|iter|iterations?|it|batch|i)$/i;
const EPOCH = /(?:^|[ _.])(?:epochs?|episode|round)$/i;

const NOTHING: INamedNumbers = { step: null, values: [] };

/** The numbers of a line with their names; each name once. */
export function namedNumbers(line: string): INamedNumbers {
  // Without a letter, there is no name: it is not taken apart for nothing.
  if (numCharacters(line) > MAX_LINE || !/\d|nan|inf/i.test(line) || !/[A-Za-z_]/.test(line)) {
    return NOTHING;
  }
  const { words, tokens } = tokenize(line.replace(COLORS, ''));
  const found = new Map<string, IToken>();
  let before = '';
  tokens.forEach((token, i) => {
    // Behind a number without a space there is its unit: GiB(13.25%).
    before += before || i === 0 ? words[i] : words[i].replace(UNIT_BEHIND, '');
    if (token.kind === 'label') {
      // Of a name, as in "top5" and "layers.0.attn".
      before += token.text;
      return;
    }
    const name = token.kind === 'number' ? nameBefore(before) : '';
    before = '';
    if (name && !found.has(name)) {
      found.set(name, token);
    }
  });
  return { step: stepOf(found), values: [...found].flatMap(([name, token]) => valueOf(name, token)) };
}

/** The last words before a number, without what joins them. */
function nameBefore(text: string): string {
  // As in "time per iteration (ms): 12.5".
  const unit = UNIT_BEFORE.exec(text.slice(-MAX_NAME));
  const name = unit && nameBefore(text.slice(-MAX_NAME).slice(0, unit.index));
  if (name) {
    return `${name} ${unit[1]}`;
  }
  const end = text.slice(-MAX_NAME).replace(BETWEEN, '').replace(TENSOR, '').replace(BETWEEN, '');
  return NAME.exec(end)?.[0] ?? '';
}

function stepOf(found: ReadonlyMap<string, IToken>): INamedNumbers['step'] {
  for (const kind of [STEP, EPOCH]) {
    for (const [name, token] of found) {
      if (kind.test(name) && isStep(token)) {
        return { name, value: token.value };
      }
    }
  }
  return null;
}

function valueOf(name: string, token: IToken): INamed[] {
  if ((STEP.test(name) || EPOCH.test(name)) && isStep(token)) {
    return [];
  }
  return [{ name, value: token.value, unit: token.unit, isMeasured: isDecimal(token) }];
}

function isStep(token: IToken): boolean {
  return Number.isInteger(token.value) && !isDecimal(token);
}
