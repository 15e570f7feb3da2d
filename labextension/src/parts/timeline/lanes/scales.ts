/** What is drawn as a line in lanes, and the greatest numbers, which all lanes share so that they can be compared. */
import type { IRank } from '../../../services/protocol';
import { greatest } from '../model/decimate';
import type { IRange } from '../model/range';
import type { TimelineModel } from '../model/timeline';

/** Processor, how busy the device is, its power, the reserved memory, or nothing. */
export const LINES = ['cpu', 'utilization', 'power', 'reserved', 'none'] as const;

export type ILine = (typeof LINES)[number];

export interface IScales {
  /** In bytes. */
  readonly memory: number;
  readonly line: number;
}

export interface INumbers {
  readonly times: readonly number[];
  readonly values: readonly number[];
  readonly afterGap: readonly boolean[];
}

const NOTHING: INumbers = { times: [], values: [], afterGap: [] };
/** Readings of devices are 3 s apart. */
const GAP_SECONDS = 15;

/** The lines that there are numbers for. */
export function linesOf(model: TimelineModel): ILine[] {
  const ranks = model.known?.ranks ?? [];
  const has = (name: 'utilization_percent' | 'power_watts'): boolean =>
    ranks.some(rank => model.device(rank)?.[name].some(value => value !== null));
  return LINES.filter(
    line =>
      line === 'cpu' ||
      line === 'none' ||
      (line === 'reserved' && model.columns.hasDevice) ||
      (line === 'utilization' && has('utilization_percent')) ||
      (line === 'power' && has('power_watts'))
  );
}

/** The numbers of a rank's line. */
export function lineOf(model: TimelineModel, rank: number, line: ILine): INumbers {
  const { columns } = model;
  if (line === 'cpu' || line === 'reserved') {
    const metric = line === 'cpu' ? 'cpu_percent' : 'reserved_bytes';
    return { times: columns.times, values: columns.column(rank, metric), afterGap: columns.afterGap };
  }
  const one: IRank | undefined = model.known?.ranks[rank];
  const device = one && model.device(one);
  if (!device || line === 'none') {
    return NOTHING;
  }
  const values = line === 'power' ? device.power_watts : device.utilization_percent;
  const afterGap = device.times.map((at, i) => i > 0 && at - device.times[i - 1] > GAP_SECONDS);
  return { times: device.times, values: values.map(value => value ?? NaN), afterGap };
}

export function scalesOf(model: TimelineModel, line: ILine, range: IRange, worldSize: number): IScales {
  const { columns } = model;
  let memory = 1;
  let most = line === 'reserved' ? 1 : 100;
  for (let rank = 0; rank < worldSize; rank++) {
    memory = Math.max(memory, greatest(columns.times, columns.column(rank, columns.memory), range));
    const { times, values } = lineOf(model, rank, line);
    most = Math.max(most, greatest(times, values, range));
  }
  // Reserved memory contains the allocated: on one scale they can be compared.
  memory = line === 'reserved' ? Math.max(memory, most) : memory;
  return { memory, line: line === 'reserved' ? memory : most };
}
