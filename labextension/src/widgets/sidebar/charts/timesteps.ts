/** The ticks of a time axis: one or more for any range, also in a narrow chart. */

/** The least distance of two ticks in pixels: a time and some air. */
export const TICK_SPACE = 66;

/** From a tick to the next, in seconds. Each is at most twice the one before, so that the next larger one has room, too. */
export const TIME_STEPS: readonly number[] = [
  1, 2, 4, 5, 10, 15, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400
];
