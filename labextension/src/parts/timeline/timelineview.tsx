/** What the timeline shows: tools, the whole time, a lane for each rank, and the table. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { IBand } from './model/bands';
import { ALL, IChoice, IRange, rangeOf, zoom } from './model/range';
import { IOrder, rowsOf } from './model/rows';
import type { TimelineModel } from './model/timeline';
import type { IExecution } from '../../services/protocol';
import { ErrorNote } from '../../widgets/base/errornote';
import { useSignal } from '../../widgets/base/hooks';
import { onThemeChange } from '../../widgets/base/themes';
import { Hands, ITimelinePoint } from './lanes/hands';
import { Lanes } from './lanes/lanes';
import { Legend } from './legend';
import { Overview } from './lanes/overview';
import { Readout } from './readout';
import { ILine, IScales, linesOf, scalesOf } from './lanes/scales';
import { RankTable } from './ranktable';
import { StepLane } from './lanes/steplane';
import { lineLabel, stepsLabel } from './timelinewords';

export interface ITimelineViewProps {
  readonly model: TimelineModel;
  /** The group's name. */
  readonly name: string;
  readonly trans: TranslationBundle;
  onOpenLog(rank: number): void;
  onOpenCell(rank: number, execution: IExecution): void;
  /** Called when it is drawn. */
  onReady(): void;
}

const NOWHERE: ITimelinePoint = { rank: null, at: null };

export function TimelineView({
  model,
  name,
  trans,
  onOpenLog,
  onOpenCell,
  onReady
}: ITimelineViewProps): React.ReactElement {
  useSignal(model.changed);
  useEffect(onReady, []);
  const [choice, setChoice] = useState<IChoice>(ALL);
  const [wanted, setLine] = useState<ILine | null>(null);
  const [order, setOrder] = useState<IOrder>({ column: 'rank', isDown: false });
  const [place, setPlace] = useState<ITimelinePoint>(NOWHERE);
  const lines = linesOf(model);
  const line = wanted && lines.includes(wanted) ? wanted : lines.includes('utilization') ? 'utilization' : 'cpu';
  const onOpen = (rank: number, band: IBand | null): void => (band ? onOpenCell(rank, band.execution) : undefined);
  const onPoint = useCallback((rank: number | null) => setPlace({ rank, at: null }), []);
  const label = trans.__('Timeline of %1', name);
  // One moment for all that is drawn: time passes.
  const full = useMemo(() => model.full(), [model, model.version]);
  const range = useMemo(() => rangeOf(choice, full), [choice, full]);
  const rows = useMemo(() => rowsOf(model), [model, model.version]);
  const scales = useMemo(
    () => scalesOf(model, line, range, model.known?.world_size ?? 0),
    [model, model.version, line, range]
  );
  return (
    <>
      <Tools {...{ full, choice, setChoice, line, lines, setLine, trans }} />
      {model.error && <ErrorNote error={model.error} />}
      <div className="jpd-Timeline-body">
        <div className="jpd-Timeline-main">
          <Charts {...{ model, full, range, choice, setChoice, line, scales, place, setPlace, onOpen, label, trans }} />
          <Readout {...{ model, line, place, scales, trans }} />
        </div>
        <div className="jpd-Timeline-scroll">
          <RankTable
            {...{ rows, order, trans, onOpenLog, onOpenCell, onPoint }}
            pointed={place.rank}
            onOrder={setOrder}
            label={trans.__('Ranks of %1', name)}
          />
        </div>
      </div>
      <Legend model={model} line={line} trans={trans} />
    </>
  );
}

interface IChartsProps extends Pick<ITimelineViewProps, 'model' | 'trans'> {
  /** All, and what the lanes show of it. */
  readonly full: IRange;
  readonly range: IRange;
  readonly choice: IChoice;
  readonly line: ILine;
  readonly scales: IScales;
  readonly place: ITimelinePoint;
  readonly label: string;
  setChoice(choice: IChoice): void;
  setPlace(place: ITimelinePoint): void;
  onOpen(rank: number, band: IBand | null): void;
}

/** The canvases, which live longer than a rendering. */
function Charts(props: IChartsProps): React.ReactElement {
  const { model, range: seen, line, place, label, trans } = props;
  const now = useRef(props);
  now.current = props;
  const overviewHost = useRef<HTMLDivElement>(null);
  const lanesHost = useRef<HTMLDivElement>(null);
  const parts = useRef<ICharts | null>(null);
  const stepsHost = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const drawn = draw(now, overviewHost.current!, stepsHost.current!, lanesHost.current!);
    parts.current = drawn;
    return () => drawn.dispose();
  }, [model]);
  useLayoutEffect(() => {
    parts.current!.lanes.update();
    parts.current!.steps.update();
    parts.current!.overview.update();
  }, [model, model.version, seen, line]);
  useLayoutEffect(() => parts.current!.lanes.point(place.rank, place.at));
  const keys = trans.__(
    'Plus and minus zoom, arrows move, 0 shows all; up and down choose a rank, Shift with an arrow its cells, Enter opens the cell.'
  );
  return (
    <>
      <div
        className="jpd-Timeline-overview"
        ref={overviewHost}
        aria-hidden="true"
        title={trans.__('Drag to choose what the lanes show')}
      />
      <div
        className="jpd-Timeline-steps"
        ref={stepsHost}
        role="img"
        aria-label={stepsLabel(trans, model)}
        title={stepsLabel(trans, model)}
        hidden={model.steps.cells.length === 0}
      />
      <div
        className="jpd-Timeline-host"
        ref={lanesHost}
        role="group"
        aria-roledescription={trans.__('timeline')}
        aria-label={`${label}. ${keys}`}
        tabIndex={0}
        data-from={seen.from}
        data-to={seen.to}
      />
    </>
  );
}

interface ICharts {
  lanes: Lanes;
  steps: StepLane;
  overview: Overview;
  dispose(): void;
}

/** Draw with the props of the moment; a new model needs new canvases. */
function draw(
  now: React.MutableRefObject<IChartsProps>,
  overviewHost: HTMLElement,
  stepsHost: HTMLElement,
  lanesHost: HTMLElement
): ICharts {
  const { model, trans } = now.current;
  const range = () => now.current.range;
  const full = () => now.current.full;
  const onChoose = (chosen: IChoice): void => now.current.setChoice(chosen);
  const lanes = new Lanes(lanesHost, { model, range, line: () => now.current.line, scales: () => now.current.scales });
  const steps = new StepLane(stepsHost, { range, cells: () => model.steps.cells, name: trans.__('step') });
  const overview = new Overview(overviewHost, {
    model,
    range,
    full,
    onSelect: selected => onChoose({ seconds: selected.to - selected.from, to: selected.to })
  });
  const hands = new Hands(lanesHost, {
    model,
    lanes,
    full,
    choice: () => now.current.choice,
    place: () => now.current.place,
    onChoose,
    onPoint: at => now.current.setPlace(at),
    onOpen: (rank, band) => now.current.onOpen(rank, band)
  });
  const themes = onThemeChange(() => [lanes, steps, overview].forEach(part => part.rebuild()));
  const dispose = (): void => {
    themes.dispose();
    hands.dispose();
    lanes.dispose();
    steps.dispose();
    overview.dispose();
  };
  return { lanes, steps, overview, dispose };
}

interface ITimelineToolsProps extends Pick<ITimelineViewProps, 'trans'> {
  readonly full: IRange;
  readonly choice: IChoice;
  readonly line: ILine;
  readonly lines: readonly ILine[];
  setChoice(choice: IChoice): void;
  setLine(line: ILine): void;
}

const SPANS = [null, 1800, 300, 60];

function Tools({ full, choice, setChoice, line, lines, setLine, trans }: ITimelineToolsProps): React.ReactElement {
  const { from, to } = rangeOf(choice, full);
  const by = (factor: number) => () => setChoice(zoom(choice, full, factor, (from + to) / 2));
  const spanLabel = (seconds: number | null): string =>
    seconds === null ? trans.__('All') : trans._n('%1 minute', '%1 minutes', seconds / 60, seconds / 60);
  return (
    <div className="jpd-Timeline-tools" role="toolbar" aria-label={trans.__('Timeline')}>
      {SPANS.map(seconds => (
        <button
          key={String(seconds)}
          type="button"
          className="jpd-Ranks-action"
          aria-pressed={choice.to === null && choice.seconds === seconds}
          title={
            seconds === null
              ? trans.__('Show all, an hour at most')
              : trans.__('Show the last minutes, and go on with the time')
          }
          onClick={() => setChoice({ seconds, to: null })}
        >
          {spanLabel(seconds)}
        </button>
      ))}
      <button
        type="button"
        className="jpd-Ranks-action"
        title={trans.__('Zoom in')}
        aria-label={trans.__('Zoom in')}
        onClick={by(0.5)}
      >
        +
      </button>
      <button
        type="button"
        className="jpd-Ranks-action"
        title={trans.__('Zoom out')}
        aria-label={trans.__('Zoom out')}
        onClick={by(2)}
      >
        {'\u2212'}
      </button>
      <label>
        {trans.__('Line')}
        <select className="jp-mod-styled" value={line} onChange={event => setLine(event.target.value as ILine)}>
          {lines.map(one => (
            <option key={one} value={one}>
              {lineLabel(trans, one)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
