/**
 * Texts by characters as Python counts them: by code points. JavaScript counts UTF-16 units, of which an emoji has two:
 * a text that is cut between them cannot be written to a file, and neither can the notebook that has it.
 */

/** White space of Python and of JavaScript, for a set of a regular expression; the same as in jupyter_dist/protocol/ranks.py. */
export const WHITE = String.raw`\s\x1c-\x1f\x85`;
/** Whether some characters have two units. */
const PAIRS = /[\ud800-\udbff][\udc00-\udfff]/;

/** The number of characters. */
export function numCharacters(text: string): number {
  if (!PAIRS.test(text)) {
    return text.length;
  }
  let count = 0;
  for (let unit = 0; unit < text.length; unit += unitsAt(text, unit)) {
    count++;
  }
  return count;
}

/** The first characters, at most so many. */
export function firstCharacters(text: string, count: number): string {
  return text.slice(0, unitsOf(text, count));
}

/** The text after its first characters. */
export function afterCharacters(text: string, count: number): string {
  return text.slice(unitsOf(text, count));
}

/** The last characters, at most so many. */
export function lastCharacters(text: string, count: number): string {
  return afterCharacters(text, Math.max(0, numCharacters(text) - count));
}

/** The text with an ellipsis in the place of what is over so many characters. */
export function shortened(text: string, count: number): string {
  return numCharacters(text) > count ? `${firstCharacters(text, count)}\u2026` : text;
}

/** The text as the beginning of a sentence. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function unitsOf(text: string, count: number): number {
  if (count >= text.length || !PAIRS.test(text)) {
    return Math.min(count, text.length);
  }
  let unit = 0;
  for (let left = count; left > 0 && unit < text.length; left--) {
    unit += unitsAt(text, unit);
  }
  return unit;
}

function unitsAt(text: string, unit: number): number {
  return text.codePointAt(unit)! > 0xffff ? 2 : 1;
}
