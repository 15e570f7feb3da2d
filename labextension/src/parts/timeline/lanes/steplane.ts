/** The lane of step times, above the lanes of ranks: how long a step took, in each cell that has steps. */
import { formatStepTime } from '../../../model/format/quantities';
import type { IRange } from '../model/range';
import type { IStepTime } from '../../../tokens';
import { GUTTER } from './lanes';

const HEIGHT = 40;
const TOP = 4;

export interface IStepLaneOptions {
  cells(): readonly (readonly IStepTime[])[];
  range(): IRange;
  /** The words before the scale. */
  name: string;
}

export class StepLane {
  constructor(
    private readonly _host: HTMLElement,
    private readonly _options: IStepLaneOptions
  ) {
    this._canvas.setAttribute('aria-hidden', 'true');
    _host.append(this._canvas);
    this._resize.observe(_host);
  }

  /** Draw in the next frame. */
  update(): void {
    this._frame = this._frame || requestAnimationFrame(() => this._draw());
  }

  /** The colors have changed. */
  rebuild(): void {
    this.update();
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._resize.disconnect();
    this._canvas.remove();
  }

  private _draw(): void {
    this._frame = 0;
    const { clientWidth: width } = this._host;
    const context = this._canvas.getContext('2d');
    if (!context || width === 0) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    this._canvas.width = Math.round(width * ratio);
    this._canvas.height = Math.round(HEIGHT * ratio);
    this._canvas.style.width = `${width}px`;
    this._canvas.style.height = `${HEIGHT}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { from, to } = this._options.range();
    const cells = this._options.cells().filter(steps => steps[steps.length - 1].at >= from && steps[0].at <= to);
    const most = Math.max(1e-9, ...cells.flatMap(steps => steps.map(({ seconds }) => seconds)));
    this._drawScale(context, cells.length > 0 ? formatStepTime(most) : '');
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER, HEIGHT);
    context.clip();
    context.strokeStyle = context.fillStyle = this._read('--jp-ui-font-color1');
    context.lineWidth = 1.25;
    for (const steps of cells) {
      const points = steps.map(({ at, seconds }) => ({
        x: GUTTER + ((at - from) / (to - from)) * (width - GUTTER),
        y: HEIGHT - 2 - (seconds / most) * (HEIGHT - 2 - TOP)
      }));
      context.beginPath();
      points.forEach(({ x, y }) => context.lineTo(x, y));
      context.stroke();
      points.forEach(({ x, y }) => context.fillRect(x - 1, y - 1, 2, 2));
    }
  }

  private _drawScale(context: CanvasRenderingContext2D, most: string): void {
    context.font = `10px ${getComputedStyle(this._host).fontFamily}`;
    context.fillStyle = this._read('--jp-ui-font-color2');
    context.textAlign = 'right';
    context.textBaseline = 'top';
    context.fillText(most, GUTTER - 8, TOP);
    context.textBaseline = 'bottom';
    context.fillText(this._options.name, GUTTER - 8, HEIGHT - 3);
  }

  private _read(name: string): string {
    return getComputedStyle(this._host).getPropertyValue(name).trim();
  }

  private readonly _canvas = document.createElement('canvas');
  private _frame = 0;
  private readonly _resize = new ResizeObserver(() => this.update());
}
