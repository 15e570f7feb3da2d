/** The last two minutes of a rank's memory, as small as a word. Drawn on a canvas, because 64 of them must be cheap. */
import React, { useEffect, useRef } from 'react';
import type { GroupMonitor } from '../../../model/groups/monitor';
import { useSidebar } from '../context';

const WIDTH = 44;
const HEIGHT = 14;
const SAMPLES = 120;
/** A relative change below this is drawn flat, so that noise looks like noise. */
const QUIET = 0.02;

export interface ISparklineProps {
  readonly monitor: GroupMonitor;
  readonly rank: number;
}

export function Sparkline({ monitor, rank }: ISparklineProps): React.ReactElement {
  const { themeChanged } = useSidebar();
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let frame = 0;
    const draw = () => {
      frame =
        frame ||
        requestAnimationFrame(() => {
          frame = 0;
          if (canvas.current) {
            const { memory } = monitor;
            drawLine(canvas.current, memory.history(rank, memory.metric, SAMPLES));
          }
        });
    };
    draw();
    monitor.memory.changed.connect(draw);
    themeChanged?.connect(draw);
    return () => {
      cancelAnimationFrame(frame);
      monitor.memory.changed.disconnect(draw);
      themeChanged?.disconnect(draw);
    };
  }, [monitor, rank, themeChanged]);
  return <canvas className="jpd-Sparkline" ref={canvas} aria-hidden="true" />;
}

function drawLine(canvas: HTMLCanvasElement, values: readonly number[]): void {
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== WIDTH * scale) {
    canvas.width = WIDTH * scale;
    canvas.height = HEIGHT * scale;
  }
  const context = canvas.getContext('2d');
  if (!context) {
    return;
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, WIDTH, HEIGHT);
  if (values.length < 2) {
    return;
  }
  const low = Math.min(...values);
  const high = Math.max(...values);
  const span = Math.max(high - low, high * QUIET, 1);
  context.strokeStyle = getComputedStyle(canvas).color;
  context.lineWidth = 1.2;
  context.lineJoin = 'round';
  context.beginPath();
  values.forEach((value, i) => {
    const x = WIDTH - 1 - ((values.length - 1 - i) * (WIDTH - 2)) / (SAMPLES - 1);
    const y = HEIGHT - 2 - ((value - low) / span) * (HEIGHT - 4);
    context.lineTo(x, y);
  });
  context.stroke();
}
