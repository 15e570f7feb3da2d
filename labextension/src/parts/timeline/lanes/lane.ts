/** Draws the lane of one rank. */
import type { ExecutionState } from '../../../services/protocol';
import { lowerBound } from '../model/columns';
import { decimate, gapsIn, IPixels } from '../model/decimate';
import type { IRange } from '../model/range';
import type { TimelineModel } from '../model/timeline';
import { rankColour } from '../../../widgets/states/rankcolor';
import { ILine, IScales, lineOf } from './scales';

export interface ILaneStyle {
  readonly background: string;
  readonly pointed: string;
  readonly border: string;
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly wait: string;
  readonly gap: string;
  readonly label: string;
  readonly font: string;
  readonly states: Record<string, string>;
  /** By rank, the colors begin again. */
  readonly ranks: readonly string[];
}

export interface ILane {
  readonly model: TimelineModel;
  readonly rank: number;
  readonly range: IRange;
  readonly line: ILine;
  readonly scales: IScales;
  readonly style: ILaneStyle;
  readonly top: number;
  readonly height: number;
  /** Of the time axis. */
  readonly width: number;
  readonly gutter: number;
  /** Pixels of a column of samples. */
  readonly step: number;
  readonly isPointed: boolean;
}

const MIN_LABEL = 22;
const WAIT_HEIGHT = 3;

/** Read the current theme, because a canvas does not follow CSS. */
export function readLaneStyle(node: HTMLElement): ILaneStyle {
  const style = getComputedStyle(node);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  const [ok, failed, runs, other] = ['success', 'error', 'brand', 'warn'].map(name => read(`--jp-${name}-color1`));
  return {
    background: read('--jp-layout-color0'),
    pointed: read('--jp-layout-color2'),
    border: read('--jp-border-color2'),
    text: read('--jp-ui-font-color1'),
    faint: read('--jp-ui-font-color2'),
    line: read('--jp-ui-font-color0'),
    wait: read('--jpd-timeline-wait'),
    gap: read('--jp-border-color3'),
    label: read('--jpd-timeline-label'),
    font: `${style.fontFamily}`,
    states: { ok, error: failed, running: runs, lost: failed, interrupted: other, aborted: other },
    ranks: Array.from({ length: 8 }, (_, rank) => rankColour(node, rank))
  };
}

export function drawLane(context: CanvasRenderingContext2D, lane: ILane): void {
  const { style, top, height, width, gutter } = lane;
  context.save();
  context.beginPath();
  context.rect(0, top, gutter + width, height);
  context.clip();
  context.fillStyle = lane.isPointed ? style.pointed : style.background;
  context.fillRect(0, top, gutter + width, height);
  drawName(context, lane);
  context.beginPath();
  context.rect(gutter, top, width, height);
  context.clip();
  context.translate(gutter, top);
  drawGaps(context, lane);
  drawMemory(context, lane);
  drawLine(context, lane);
  drawBands(context, lane);
  drawWaits(context, lane);
  context.restore();
  context.fillStyle = style.border;
  context.fillRect(0, top + height - 1, gutter + width, 1);
}

/** Where the bands end and the numbers begin. */
function bandHeight(height: number): number {
  return height >= 32 ? 13 : 8;
}

function drawName(context: CanvasRenderingContext2D, { style, rank, top, height, gutter }: ILane): void {
  context.fillStyle = style.ranks[rank % style.ranks.length];
  context.fillRect(0, top + 1, 4, height - 2);
  context.fillStyle = style.text;
  context.font = `12px ${style.font}`;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  context.fillText(String(rank), gutter - 8, top + height / 2);
}

function drawGaps(context: CanvasRenderingContext2D, { model, range, style, height, width }: ILane): void {
  const top = bandHeight(height) + WAIT_HEIGHT;
  const scale = width / (range.to - range.from);
  context.strokeStyle = style.gap;
  context.lineWidth = 1;
  for (const { from, to } of gapsIn(model.columns.times, model.columns.afterGap, range)) {
    const [left, right] = [(from - range.from) * scale, (to - range.from) * scale];
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, height);
    context.clip();
    context.beginPath();
    for (let x = left - (left % 8) - height; x < right; x += 8) {
      context.moveTo(x, height);
      context.lineTo(x + height, 0);
    }
    context.stroke();
    context.restore();
  }
}

function drawMemory(context: CanvasRenderingContext2D, lane: ILane): void {
  const { model, range, style, height, width, rank, scales, step } = lane;
  const { columns } = model;
  const pixels = decimate(columns.times, columns.column(rank, columns.memory), columns.afterGap, range, width, step);
  const colour = style.ranks[rank % style.ranks.length];
  const yOf = heights(height, scales.memory);
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = 1.25;
  parts(pixels, (begin, end) => {
    context.beginPath();
    context.moveTo(pixels.x[begin], height);
    for (let i = begin; i < end; i++) {
      context.lineTo(pixels.x[i], yOf(pixels.high[i]));
    }
    context.lineTo(pixels.x[end - 1], height);
    context.globalAlpha = 0.28;
    context.fill();
    context.globalAlpha = 1;
    stroke(context, pixels, begin, end, yOf);
  });
}

function drawLine(context: CanvasRenderingContext2D, lane: ILane): void {
  const { model, range, style, height, width, rank, scales, line, step } = lane;
  const { times, values, afterGap } = lineOf(model, rank, line);
  const pixels = decimate(times, values, afterGap, range, width, step);
  const yOf = heights(height, scales.line);
  context.strokeStyle = style.line;
  context.lineWidth = 0.75;
  parts(pixels, (begin, end) => stroke(context, pixels, begin, end, yOf));
}

function heights(height: number, most: number): (value: number) => number {
  const top = bandHeight(height) + WAIT_HEIGHT + 2;
  const room = height - 2 - top;
  return value => height - 2 - (value / most) * room;
}

function parts({ x, starts }: IPixels, draw: (begin: number, end: number) => void): void {
  starts.forEach((begin, i) => draw(begin, starts[i + 1] ?? x.length));
}

/** A line through the least and greatest of each column of pixels. */
function stroke(
  context: CanvasRenderingContext2D,
  pixels: IPixels,
  begin: number,
  end: number,
  yOf: (value: number) => number
): void {
  const { x, low, high } = pixels;
  context.beginPath();
  context.moveTo(x[begin], yOf(low[begin]));
  for (let i = begin; i < end; i++) {
    context.lineTo(x[i], yOf(low[i]));
    if (high[i] !== low[i]) {
      context.lineTo(x[i], yOf(high[i]));
    }
  }
  if (end - begin === 1) {
    context.lineTo(x[begin] + 1, yOf(low[begin])); // a sample alone is seen, too
  }
  context.stroke();
}

function drawBands(context: CanvasRenderingContext2D, { model, range, style, height, width, rank }: ILane): void {
  const bands = model.bands(rank);
  const scale = width / (range.to - range.from);
  const now = model.now();
  const bottom = bandHeight(height);
  context.font = `${bottom - 3}px ${style.font}`;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  let right = -Infinity;
  let state: ExecutionState | null = null;
  for (const band of bands) {
    const left = (band.begin - range.from) * scale;
    const end = ((band.end ?? now) - range.from) * scale;
    // Thousands of short cells are drawn once for each pixel; a failed one is not hidden by others.
    const isHidden = Math.max(end, left + 2) <= right && (band.state === state || band.state === 'ok');
    if (end < 0 || left > width || isHidden) {
      continue;
    }
    const wide = Math.max(2, end - left - 0.5);
    context.fillStyle = style.states[band.state] ?? style.faint;
    context.fillRect(left, 1, wide, bottom - 1);
    right = left + wide;
    state = band.state;
    const shown = Math.min(width, end) - Math.max(0, left);
    if (shown > MIN_LABEL && bottom > 10) {
      context.fillStyle = style.label;
      const count = band.execution.execution_count;
      context.fillText(`[${count ?? '*'}]`, Math.max(0, left) + 3, bottom / 2 + 1, shown - 4);
    }
  }
}

function drawWaits(context: CanvasRenderingContext2D, { model, range, style, height, width, rank }: ILane): void {
  const scale = width / (range.to - range.from);
  const waits = model.sights.waits(rank);
  const first = lowerBound(
    waits.map(({ end }) => end),
    range.from
  );
  context.fillStyle = style.wait;
  for (const { begin, end } of waits.slice(first)) {
    const left = (begin - range.from) * scale;
    if (left > width) {
      break;
    }
    context.fillRect(left, bandHeight(height), Math.max(2, (end - begin) * scale), WAIT_HEIGHT);
  }
}
