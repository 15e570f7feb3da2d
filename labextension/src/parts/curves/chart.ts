/** One curve: mean and band over the ranks, and lines of single ranks. */
import type { TranslationBundle } from '@jupyterlab/translation';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatRanks } from '../../model/format/ranks';
import type { Curve } from './model/series';
import { ITable, tableOf } from './model/curvetable';
import { rankColour } from '../../widgets/states/rankcolor';

const HEIGHT = 150;
const FIGURES = 4;
/** Smaller numbers are written with an exponent. */
const TINY = 1e-3;
/** The first columns: places, the greatest, the least, the mean. */
const NUM_SHARED = 4;

export class CurveChart {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _sync: string
  ) {
    this.node.className = 'jpd-Curve';
    this._title.className = 'jpd-Curve-title';
    this._host.className = 'jpd-Curve-chart';
    this._host.tabIndex = 0;
    this._host.setAttribute('role', 'img');
    this._host.addEventListener('keydown', event => this._onKeyDown(event));
    this._readout.className = 'jpd-Curve-readout';
    this.node.append(this._title, this._host, this._readout);
    this._resize.observe(this._host);
  }

  readonly node = document.createElement('figure');

  /** Draw the curve; `shown`: the ranks that have a line. */
  update(curve: Curve, shown: ReadonlySet<number>): void {
    this._curve = curve;
    this._shown = shown;
    if (this._host.clientWidth === 0) {
      // JupyterLab hides everything while a theme changes: observe again, to get the width once it is visible.
      this._resize.unobserve(this._host);
      this._resize.observe(this._host);
      return;
    }
    const table = (this._table = tableOf(curve));
    const ranks = [...table.byRank.keys()];
    if (this._plot && ranks.join() !== this._ranks.join()) {
      this.rebuild();
      return;
    }
    this._ranks = ranks;
    const data = [table.places, table.high, table.low, table.mean, ...table.byRank.values()] as uPlot.AlignedData;
    if (this._plot) {
      this._showRanks();
      this._plot.setData(data);
    } else {
      this._plot = new uPlot(this._options(), data, this._host);
    }
    this._say();
  }

  /** The colors have changed, or the ranks. */
  rebuild(): void {
    this._plot?.destroy();
    this._plot = null;
    if (this._curve) {
      this.update(this._curve, this._shown);
    }
  }

  dispose(): void {
    this._resize.disconnect();
    this._plot?.destroy();
    this.node.remove();
  }

  private _options(): uPlot.Options {
    const style = getComputedStyle(this._host);
    const read = (name: string): string => style.getPropertyValue(name).trim();
    const axis = { stroke: read('--jp-ui-font-color2'), font: `10px ${style.fontFamily}`, ticks: { show: false } };
    const grid = { stroke: read('--jp-border-color2'), width: 1 };
    const edge = { width: 0, points: { show: false } };
    const mean = read('--jp-ui-font-color1');
    return {
      width: this._host.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: this._sync }, drag: { x: true, y: false }, points: { size: 5 } },
      padding: [8, 12, 0, 0],
      scales: { x: { time: false } },
      axes: [
        { ...axis, size: 20, gap: 3, space: 60, grid: { show: false } },
        { ...axis, size: 56, gap: 4, space: 24, grid, values: (_, ticks) => ticks.map(tick => written(tick)) }
      ],
      series: [
        {},
        edge,
        edge,
        { stroke: mean, width: 1.75, points: { show: this._isShort() } },
        ...this._ranks.map(rank => ({
          stroke: rankColour(this._host, rank),
          width: 1.25,
          show: this._shown.has(rank),
          points: { show: false }
        }))
      ],
      bands: [{ series: [1, 2], fill: `color-mix(in srgb, ${mean} 25%, transparent)` }],
      hooks: { setCursor: [() => this._say()] }
    };
  }

  /** A line of few points is shown with them. */
  private _isShort(): boolean {
    return this._table!.places.length <= 20;
  }

  private _showRanks(): void {
    this._ranks.forEach((rank, i) => {
      const show = this._shown.has(rank);
      if (this._plot!.series[NUM_SHARED + i].show !== show) {
        this._plot!.setSeries(NUM_SHARED + i, { show }, false);
      }
    });
  }

  /** The numbers at the cursor; without one, the last. */
  private _say(): void {
    const { _curve: curve, _table: table, _trans: trans } = this;
    if (!curve || !table || table.places.length === 0) {
      return;
    }
    const row = this._plot?.cursor.idx ?? table.places.length - 1;
    const unit = curve.unit ? ` ${curve.unit}` : '';
    setText(this._title, `${curve.name}${curve.unit ? ` (${curve.unit})` : ''}`);
    const name = curve.hasSteps && curve.stepName ? curve.stepName : trans.__('number');
    const parts = [`${name} ${table.places[row]}`, `${written(table.mean[row])}${unit}`];
    if (table.low[row] !== table.high[row]) {
      parts.push(`${written(table.low[row])} \u2026 ${written(table.high[row])}`);
    }
    parts.push(...this._ranks.filter(rank => this._shown.has(rank)).map(rank => this._ofRank(table, rank, row)));
    parts.push(...this._oddOf(curve));
    setText(this._readout, parts.join(' \u00b7 '));
    this._host.setAttribute('aria-label', `${curve.name}: ${this._readout.textContent}`);
  }

  private _ofRank(table: ITable, rank: number, row: number): string {
    return this._trans.__('rank %1: %2', rank, written(table.byRank.get(rank)![row]));
  }

  /** "nan or inf on rank 2". */
  private _oddOf(curve: Curve): string[] {
    const odd = [...curve.ranks].filter(([, { oddAt }]) => oddAt !== null).map(([rank]) => rank);
    return odd.length === 0 ? [] : [this._trans.__('nan or inf on rank %1', formatRanks(odd.sort((a, b) => a - b)))];
  }

  private _onKeyDown(event: KeyboardEvent): void {
    const { _plot: plot, _table: table } = this;
    const last = (table?.places.length ?? 0) - 1;
    const at = plot?.cursor.idx ?? last;
    const next: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
    if (!plot || !table || !(event.key in next)) {
      return;
    }
    // Otherwise the notebook would move to another cell.
    event.preventDefault();
    event.stopPropagation();
    const row = Math.min(Math.max(next[event.key], 0), last);
    plot.setCursor({ left: plot.valToPos(table.places[row], 'x'), top: HEIGHT / 2 });
  }

  private _onResize(): void {
    const width = this._host.clientWidth;
    if (this._plot && width > 0 && width !== this._plot.width) {
      this._plot.setSize({ width, height: HEIGHT });
    } else if (!this._plot && this._curve) {
      this.update(this._curve, this._shown);
    }
  }

  private _curve: Curve | null = null;
  private readonly _host = document.createElement('div');
  private _plot: uPlot | null = null;
  private _ranks: number[] = [];
  private readonly _readout = document.createElement('figcaption');
  private readonly _resize = new ResizeObserver(() => this._onResize());
  private _shown: ReadonlySet<number> = new Set();
  private _table: ITable | null = null;
  private readonly _title = document.createElement('div');
}

function written(value: number | null | undefined): string {
  if (value === null || value === undefined) {
    return '\u2013';
  }
  const isTiny = value !== 0 && Math.abs(value) < TINY;
  return isTiny ? value.toExponential(FIGURES - 2) : String(Number(value.toPrecision(FIGURES)));
}

function setText(node: Element, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}
