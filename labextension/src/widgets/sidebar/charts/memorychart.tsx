/** A group's memory over the last minutes, with the cells it ran. A line per rank, or a band for many ranks. */
import React, { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { GroupMonitor } from '../../../model/groups/monitor';
import { formatBytes } from '../../../model/format/quantities';
import { NUM_COLOURS, rankColour } from '../../states/rankcolor';
import { useSidebar } from '../context';
import { TICK_SPACE, TIME_STEPS } from './timesteps';

const HEIGHT = 84;
const AXIS_WIDTH = 52;
/** Fewer samples are not worth a chart. */
const MIN_SAMPLES = 2;
/** The shortest time span of an axis: the line of a new group grows from the right. */
const MIN_SECONDS = 60;

/** Ticks at 256 MB and 16 GB, not at 238 MB and 18.6 GB. */
const BINARY_STEPS = Array.from({ length: 46 }, (_, power) => 2 ** power);

export interface IMemoryChartProps {
  readonly monitor: GroupMonitor;
  readonly worldSize: number;
  /** The rank to highlight. */
  readonly pointed: number | null;
}

export function MemoryChart({ monitor, worldSize, pointed }: IMemoryChartProps): React.ReactElement {
  const { themeChanged, trans } = useSidebar();
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  useEffect(() => {
    if (!host.current) {
      return;
    }
    const made = new Chart(host.current, monitor, worldSize);
    chart.current = made;
    const update = () => made.scheduleUpdate();
    const rebuild = () => made.rebuild();
    monitor.memory.changed.connect(update);
    monitor.changed.connect(update);
    themeChanged?.connect(rebuild);
    return () => {
      monitor.memory.changed.disconnect(update);
      monitor.changed.disconnect(update);
      themeChanged?.disconnect(rebuild);
      made.dispose();
      chart.current = null;
    };
  }, [monitor, worldSize, themeChanged]);
  useEffect(() => chart.current?.point(pointed), [pointed]);
  const label = monitor.memory.hasDevice
    ? trans.__('Allocated device memory by rank over the last minutes')
    : trans.__('Resident memory by rank over the last minutes');
  return <div className="jpd-MemoryChart" ref={host} role="img" aria-label={label} title={label} />;
}

/** The chart, created again when colors or the number of series change. */
class Chart {
  constructor(host: HTMLElement, monitor: GroupMonitor, worldSize: number) {
    this._host = host;
    this._monitor = monitor;
    this._worldSize = worldSize;
    this._resize = new ResizeObserver(() => this._onResize());
    this._resize.observe(host);
    this.scheduleUpdate();
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._resize.disconnect();
    this._plot?.destroy();
    this._plot = null;
  }

  scheduleUpdate(): void {
    this._frame = this._frame || requestAnimationFrame(() => this._update());
  }

  rebuild(): void {
    this._plot?.destroy();
    this._plot = null;
    this.scheduleUpdate();
  }

  point(rank: number | null): void {
    if (rank !== this._pointed) {
      this._pointed = rank;
      this._plot?.redraw(false);
    }
  }

  private _update(): void {
    this._frame = 0;
    const plot = this._monitor.memory.plot(this._worldSize);
    this._host.hidden = plot.times.length < MIN_SAMPLES;
    if (this._host.hidden) {
      return;
    }
    if (this._host.clientWidth === 0) {
      // JupyterLab hides everything while a theme changes: observe again, to get the width once it is visible.
      this._resize.unobserve(this._host);
      this._resize.observe(this._host);
      return;
    }
    this._ranks = plot.ranks;
    const data = [plot.times, ...plot.series] as uPlot.AlignedData;
    if (this._plot) {
      this._plot.setData(data);
    } else {
      this._plot = new uPlot(this._options(plot.series.length), data, this._host);
    }
  }

  private _options(count: number): uPlot.Options {
    const colours = readColours(this._host);
    const isBand = this._ranks === null;
    const axis = { stroke: colours.text, font: colours.font, ticks: { show: false } };
    return {
      width: this._host.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      padding: [8, 26, 0, 0],
      scales: {
        x: { range: (_, first, last) => [Math.min(first, last - MIN_SECONDS), last] },
        y: { range: (_, low, high) => padded(low, high) }
      },
      axes: [
        {
          ...axis,
          size: 18,
          gap: 2,
          space: TICK_SPACE,
          incrs: [...TIME_STEPS],
          grid: { show: false },
          values: (_, ticks) => ticks.map(clockTime)
        },
        {
          ...axis,
          size: AXIS_WIDTH,
          gap: 4,
          space: 20,
          grid: { stroke: colours.grid, width: 1 },
          incrs: BINARY_STEPS,
          values: (_, ticks) => ticks.map(value => formatBytes(value).replace(/\.0+ /, ' '))
        }
      ],
      series: [{}, ...Array.from({ length: count }, (_, i) => this._series(i, colours, isBand))],
      bands: isBand ? [{ series: [3, 1], fill: colours.band }] : [],
      hooks: { drawClear: [plot => this._drawCells(plot, colours)] }
    };
  }

  private _series(index: number, colours: IColours, isBand: boolean): uPlot.Series {
    const isEdge = isBand && index !== 1;
    return {
      points: { show: false },
      width: isEdge ? 0 : 1.25,
      stroke: () => {
        const isPointed = isBand || this._pointed === null || this._pointed === this._ranks?.[index];
        const rank = this._ranks?.[index];
        return !isPointed ? colours.faint : rank === undefined ? colours.line : colours.ranks[rank % NUM_COLOURS];
      }
    };
  }

  /** A thin line where each cell started. */
  private _drawCells(plot: uPlot, colours: IColours): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.font = colours.markFont;
    ctx.textBaseline = 'top';
    ctx.textAlign = 'left';
    let right = -Infinity;
    for (const execution of this._monitor.executions) {
      const x = execution.started_at === null ? -1 : plot.valToPos(execution.started_at, 'x', true);
      if (x < bbox.left || x > bbox.left + bbox.width) {
        continue;
      }
      ctx.fillStyle = colours.mark;
      ctx.fillRect(Math.round(x), bbox.top, 1, bbox.height);
      const label = execution.execution_count === null ? '' : `[${execution.execution_count}]`;
      if (x > right) {
        ctx.fillStyle = colours.text;
        ctx.fillText(label, x + 3, bbox.top + 1);
        right = x + ctx.measureText(label).width + 8;
      }
    }
    ctx.restore();
  }

  private _onResize(): void {
    const width = this._host.clientWidth;
    if (width > 0 && this._plot && this._plot.width !== width) {
      this._plot.setSize({ width, height: HEIGHT });
    } else if (!this._plot) {
      this.scheduleUpdate();
    }
  }

  private readonly _host: HTMLElement;
  private readonly _monitor: GroupMonitor;
  private readonly _worldSize: number;
  private readonly _resize: ResizeObserver;
  private _plot: uPlot | null = null;
  private _ranks: number[] | null = null;
  private _pointed: number | null = null;
  private _frame = 0;
}

function clockTime(at: number): string {
  return new Date(at * 1000).toLocaleTimeString(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false
  });
}

/** Some padding around the values, so that a flat line is not on an edge. */
function padded(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) {
    return [0, 1];
  }
  const air = Math.max((high - low) * 0.15, high * 0.02, 1);
  return [Math.max(0, low - air), high + air];
}

/** The colors and fonts of a chart. */
interface IColours {
  readonly line: string;
  readonly faint: string;
  /** The colors of ranks. */
  readonly ranks: readonly string[];
  readonly band: string;
  readonly text: string;
  readonly grid: string;
  readonly mark: string;
  readonly font: string;
  readonly markFont: string;
}

/** Read the current theme, because a canvas does not follow CSS. */
function readColours(node: HTMLElement): IColours {
  const style = getComputedStyle(node);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const family = style.fontFamily;
  const scale = window.devicePixelRatio || 1;
  return {
    line: read('--jp-brand-color1'),
    faint: read('--jp-border-color1'),
    ranks: Array.from({ length: NUM_COLOURS }, (_, rank) => rankColour(node, rank)),
    band: `color-mix(in srgb, ${read('--jp-brand-color1')} 25%, transparent)`,
    text: read('--jp-ui-font-color2'),
    grid: read('--jp-border-color2'),
    mark: read('--jp-border-color1'),
    font: `10px ${family}`,
    markFont: `${9 * scale}px ${family}`
  };
}
