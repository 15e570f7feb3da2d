/** The whole time with the memory of all ranks, and the axis of the lanes. Drag in it to choose what the lanes show. */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatBytes } from '../../../model/format/quantities';
import type { IRange } from '../model/range';
import type { TimelineModel } from '../model/timeline';
import { GUTTER } from './lanes';

const HEIGHT = 64;
const AXIS_HEIGHT = 22;
/** Ticks at 256 MB and 16 GB, not at 238 MB and 18.6 GB. */
const BINARY_STEPS = Array.from({ length: 46 }, (_, power) => 2 ** power);
/** A selection is at least so wide: a click is none. */
const MIN_DRAG = 4;

export interface IOverviewOptions {
  model: TimelineModel;
  range(): IRange;
  full(): IRange;
  onSelect(range: IRange): void;
}

export class Overview {
  constructor(
    private readonly _host: HTMLElement,
    private readonly _options: IOverviewOptions
  ) {
    this._resize.observe(_host);
  }

  /** Draw in the next frame. */
  update(): void {
    this._frame = this._frame || requestAnimationFrame(() => this._draw());
  }

  /** The colors have changed. */
  rebuild(): void {
    this._destroy();
    this.update();
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._resize.disconnect();
    this._destroy();
  }

  private _destroy(): void {
    this._whole?.destroy();
    this._axis?.destroy();
    this._whole = this._axis = null;
  }

  private _draw(): void {
    this._frame = 0;
    const width = this._host.clientWidth;
    if (width === 0) {
      return;
    }
    if (this._whole && this._whole.width !== width) {
      this._whole.setSize({ width, height: HEIGHT });
      this._axis!.setSize({ width, height: AXIS_HEIGHT });
    }
    const { model, range } = this._options;
    const full = this._options.full();
    const data = band(model) as uPlot.AlignedData;
    this._whole ??= new uPlot(this._wholeOptions(width), data, this._host);
    this._axis ??= new uPlot(this._axisOptions(width), [[], []], this._host);
    this._whole.setData(data, false);
    this._whole.setScale('x', { min: full.from, max: full.to });
    const { from, to } = range();
    this._axis.setScale('x', { min: from, max: to });
  }

  private _wholeOptions(width: number): uPlot.Options {
    const style = getComputedStyle(this._host);
    const read = (name: string): string => style.getPropertyValue(name).trim();
    const axis = { stroke: read('--jp-ui-font-color2'), font: `10px ${style.fontFamily}`, ticks: { show: false } };
    const line = read('--jp-ui-font-color1');
    const shade = read('--jp-layout-color3');
    const edge = { width: 0, points: { show: false } };
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { points: { show: false }, y: false, drag: { x: true, y: false, setScale: false } },
      padding: [4, 0, 0, 0],
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, (high ?? low ?? 1) * 1.1 || 1] } },
      axes: [
        {
          ...axis,
          size: 16,
          gap: 1,
          space: 80,
          grid: { show: false },
          values: (plot, ticks) => (this._isAll() ? [] : clockTimes(plot, ticks))
        },
        {
          ...axis,
          size: GUTTER,
          gap: 4,
          space: 20,
          incrs: BINARY_STEPS,
          grid: { show: false },
          values: (_, ticks) => ticks.map(tick => formatBytes(tick).replace(/\.0+ /, ' '))
        }
      ],
      series: [{}, edge, edge, { stroke: line, width: 1.25, points: { show: false } }],
      bands: [{ series: [1, 2], fill: `color-mix(in srgb, ${line} 25%, transparent)` }],
      hooks: { drawClear: [plot => this._shade(plot, shade)], setSelect: [plot => this._onSelect(plot)] }
    };
  }

  private _axisOptions(width: number): uPlot.Options {
    const style = getComputedStyle(this._host);
    const read = (name: string): string => style.getPropertyValue(name).trim();
    const axis = { stroke: read('--jp-ui-font-color2'), font: `10px ${style.fontFamily}` };
    return {
      width,
      height: AXIS_HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      padding: [0, 0, 0, GUTTER],
      scales: { x: { time: true } },
      axes: [
        {
          ...axis,
          size: 20,
          gap: 2,
          space: 80,
          grid: { show: false },
          ticks: { size: 3, stroke: read('--jp-border-color1') },
          values: clockTimes
        },
        { show: false }
      ],
      series: [{}, {}]
    };
  }

  /** Whether the lanes show the full range: then their axis shows the times. */
  private _isAll(): boolean {
    const [{ from, to }, full] = [this._options.range(), this._options.full()];
    return to - from >= (full.to - full.from) * 0.99;
  }

  /** What the lanes show, behind the chart. */
  private _shade(plot: uPlot, colour: string): void {
    const { from, to } = this._options.range();
    const { ctx, bbox } = plot;
    const [left, right] = [from, to].map(at =>
      Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos(at, 'x', true)))
    );
    if (right - left < bbox.width - 2) {
      ctx.save();
      ctx.fillStyle = colour;
      ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
      ctx.restore();
    }
  }

  private _onSelect(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width >= MIN_DRAG) {
      this._options.onSelect({ from: plot.posToVal(left, 'x'), to: plot.posToVal(left + width, 'x') });
    }
    if (width > 0) {
      plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    }
  }

  private _axis: uPlot | null = null;
  private _frame = 0;
  private readonly _resize = new ResizeObserver(() => this.update());
  private _whole: uPlot | null = null;
}

/** Times, and the highest, lowest and mean memory of the ranks. */
function band({ columns, known }: TimelineModel): (number | null)[][] {
  const { times, afterGap } = columns;
  const [at, high, low, mean]: (number | null)[][] = [[], [], [], []];
  const ranks = Array.from({ length: known?.world_size ?? 0 }, (_, rank) => columns.column(rank, columns.memory));
  times.forEach((time, i) => {
    let [least, most, sum, count] = [Infinity, 0, 0, 0];
    for (const column of ranks) {
      const value = column[i];
      if (value >= 0) {
        least = Math.min(least, value);
        most = Math.max(most, value);
        sum += value;
        count += 1;
      }
    }
    if (afterGap[i]) {
      at.push(times[i - 1] + 1e-3);
      [high, low, mean].forEach(values => values.push(null));
    }
    at.push(time);
    high.push(count ? most : null);
    low.push(count ? least : null);
    mean.push(count ? sum / count : null);
  });
  return [at, high, low, mean];
}

function clockTimes(_: uPlot, ticks: number[]): string[] {
  return ticks.map(at =>
    new Date(at * 1000).toLocaleTimeString(undefined, {
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hour12: false
    })
  );
}
