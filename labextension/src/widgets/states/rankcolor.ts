/** The color of a rank, the same wherever it is shown: style/ranks.css has them. */

/** So many ranks have a color of their own; further ones begin again. */
export const NUM_COLOURS = 8;

/** The name of its color: an attribute that the style sheets know. */
export function hueOf(rank: number): string {
  return String(rank % NUM_COLOURS);
}

/** Its color in the current theme, for a canvas. */
export function rankColour(node: HTMLElement, rank: number): string {
  return getComputedStyle(node)
    .getPropertyValue(`--jpd-rank-color${hueOf(rank)}`)
    .trim();
}
