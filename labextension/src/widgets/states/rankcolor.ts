/** The color of a rank, the same wherever it is shown: style/ranks.css has them. */

/** The number of different colors; further ranks repeat them. */
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
