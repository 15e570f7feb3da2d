import { expect, it } from 'vitest';
import { TICK_SPACE, TIME_STEPS } from './timesteps';

/** The plot of the chart in the narrowest sidebar, in pixels. */
const WIDTH = 215;

/** The step that uPlot takes: the first with room for its label. */
function stepFor(seconds: number): number {
  return TIME_STEPS.find(step => (step / seconds) * WIDTH >= TICK_SPACE) ?? Infinity;
}

it('has a tick for each range of time, wherever the range begins', () => {
  const ranges = Array.from({ length: 86400 - 60 }, (_, i) => i + 60);
  expect(ranges.filter(seconds => stepFor(seconds) > seconds)).toEqual([]);
});
