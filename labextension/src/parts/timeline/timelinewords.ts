/** The timeline's texts. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { firstCharacters } from '../../model/format/characters';
import { formatBytes, formatPercent, formatSeconds, formatStepTime } from '../../model/format/quantities';
import { bandAt, IBand } from './model/bands';
import type { TimelineModel } from './model/timeline';
import type { IExecution } from '../../services/protocol';
import { stateWord } from '../../widgets/states/statewords';
import type { ITimelinePoint } from './lanes/hands';
import { ILine, lineOf } from './lanes/scales';
import { lowerBound } from './model/columns';

/** "[7] train.ipynb". */
export function cellWords(trans: TranslationBundle, execution: IExecution | null): string {
  return execution
    ? `[${execution.execution_count ?? '*'}] ${execution.notebook?.split('/').pop() ?? trans.__('cell')}`
    : '';
}

export function lineLabel(trans: TranslationBundle, line: ILine): string {
  const labels: Record<ILine, string> = {
    cpu: trans.__('CPU'),
    utilization: trans.__('Device utilization'),
    power: trans.__('Device power'),
    reserved: trans.__('Reserved memory'),
    none: trans.__('None')
  };
  return labels[line];
}

export function lineWords(line: ILine, value: number): string {
  return line === 'reserved' ? formatBytes(value) : line === 'power' ? `${Math.round(value)} W` : formatPercent(value);
}

/** What is at a place: "rank 3, 12:03:10: 412 MB, CPU 98 %, [7] train.ipynb, running 3.2 s". */
export function placeWords(
  trans: TranslationBundle,
  model: TimelineModel,
  line: ILine,
  { rank, at }: ITimelinePoint
): string {
  if (rank === null) {
    return '';
  }
  const name = trans.__('rank %1', rank);
  if (at === null) {
    return name;
  }
  const band = bandAt(model.bands(rank), at, 0, model.now());
  const parts = [
    sampleWords(trans, model, line, rank, at),
    band ? bandWords(trans, model, band) : '',
    waitWords(trans, model, rank, at),
    stepAt(trans, model, at)
  ];
  return `${name}, ${clockTime(at)}: ${parts.filter(Boolean).join(', ')}`;
}

function stepAt(trans: TranslationBundle, { steps }: TimelineModel, at: number): string {
  const step = steps.near(at);
  return step ? trans.__('a step took %1', formatStepTime(step.seconds)) : '';
}

/** What the lane of step times shows. */
export function stepsLabel(trans: TranslationBundle, { steps }: TimelineModel): string {
  const times = steps.cells.flatMap(cell => cell.map(({ seconds }) => seconds));
  const [least, most] = [Math.min(...times), Math.max(...times)].map(formatStepTime);
  return trans.__('How long the steps of cells took: %1 to %2', least, most);
}

function bandWords(trans: TranslationBundle, model: TimelineModel, { execution, begin, end, state }: IBand): string {
  const lasted = formatSeconds((end ?? model.now()) - begin);
  const code = execution.line ? ` (${firstCharacters(execution.line, 60)})` : '';
  return `${cellWords(trans, execution)}${code} ${stateWord(trans, state)} ${lasted}`;
}

function waitWords(trans: TranslationBundle, model: TimelineModel, rank: number, at: number): string {
  const wait = model.sights.waits(rank).find(({ begin, end }) => begin - 1 <= at && at <= end + 1);
  return wait ? trans.__('seen in %1', wait.call) : '';
}

/** The numbers of the sample nearest to a time; in a gap that there are none. */
function sampleWords(trans: TranslationBundle, model: TimelineModel, line: ILine, rank: number, at: number): string {
  const { columns } = model;
  const after = columns.indexOf(at);
  const isInGap = after === 0 || columns.afterGap[after];
  const nearest =
    after > 0 && (after >= columns.times.length || at - columns.times[after - 1] < columns.times[after] - at)
      ? after - 1
      : after;
  const memory = columns.column(rank, columns.memory)[nearest];
  if (isInGap || memory === undefined || Number.isNaN(memory)) {
    return trans.__('not sampled');
  }
  const { times, values } = lineOf(model, rank, line);
  const value = values[Math.min(values.length - 1, lowerBound(times, columns.times[nearest]))];
  const said =
    value === undefined || Number.isNaN(value) ? '' : `, ${lineLabel(trans, line)} ${lineWords(line, value)}`;
  return `${formatBytes(memory)}${said}`;
}

export function clockTime(at: number): string {
  return new Date(at * 1000).toLocaleTimeString(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false
  });
}
