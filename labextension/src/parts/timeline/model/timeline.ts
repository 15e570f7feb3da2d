/** The timeline of a group: the last hour of samples and cells, kept up to date while it is visible. */
import type { IDisposable } from '@lumino/disposable';
import type { DistError } from '../../../services/errors';
import type {
  IDeviceSamples,
  IErrorBody,
  IExecution,
  IGroup,
  IMemorySample,
  IRank,
  TopicMessage
} from '../../../services/protocol';
import type { IDistGroups, IDistService, IDistStepTimes, IClock } from '../../../tokens';
import { ChangingModel } from '../../../model/changing';
import { bandsOf, IBand, Sights } from './bands';
import { SampleColumns } from './columns';
import type { IRange } from './range';
import { StepTimesModel } from './steptimes';

const HOUR = 3600;
/** The axis of a new group grows to this, then moves. */
const MIN_SPAN = 60;
const MAX_READINGS = 1500;
/** Ranks end their parts of a cell one after the other: their list is read once. */
const SETTLE_MS = 300;

export type TimelineService = Pick<IDistService, 'samples' | 'executions' | 'subscribe'>;

export class TimelineModel extends ChangingModel {
  constructor(
    private readonly _service: TimelineService,
    private readonly _groups: Pick<IDistGroups, 'groups' | 'changed'>,
    private readonly _clock: IClock,
    readonly group: string,
    stepTimes: IDistStepTimes | null = null
  ) {
    super();
    this._known = this._find();
    this.steps = new StepTimesModel(stepTimes, group);
    this.steps.changed.connect(this.emitChanged, this);
    this._groups.changed.connect(this._update, this);
  }

  readonly columns = new SampleColumns();
  readonly sights = new Sights();
  readonly steps: StepTimesModel;

  /** Counts the changes. */
  get version(): number {
    return this._version;
  }

  /** As it was last known; null if it never was. */
  get known(): IGroup | null {
    return this._known;
  }

  /** Whether the group is gone. */
  get isGone(): boolean {
    return this._find() === null;
  }

  /** Why the past could not be read. */
  get error(): IErrorBody | null {
    return this._error;
  }

  /** Whether the past has been read. */
  get isLoaded(): boolean {
    return this._isLoaded;
  }

  /** The cells of a rank, by their begin. */
  bands(rank: number): readonly IBand[] {
    return this._bands.get(rank) ?? [];
  }

  /** How the device of a rank was used; null if it has none that the server can read. */
  device(rank: IRank): IDeviceSamples | null {
    const index = this._known?.devices[rank.local_rank];
    return this._devices.get(`${this._known?.accelerator} ${index}`) ?? null;
  }

  /** The execution, if it is known. */
  execution(id: string | null): IExecution | null {
    return this._executions.find(execution => execution.id === id) ?? null;
  }

  /** The server's time now, in seconds. */
  now(): number {
    return Math.max(this._clock.now(), this.columns.last);
  }

  /** From the first that is known, an hour ago at most, to now. */
  full(): IRange {
    const to = this.now();
    const starts = [this.columns.times[0] ?? to, this._firstBegin];
    const from = Math.max(to - HOUR, Math.min(...starts));
    return { from: Math.min(from, to - MIN_SPAN), to };
  }

  /** Follow while it is visible: only then are samples taken for it. */
  setVisible(isVisible: boolean): void {
    if (isVisible === (this._following !== null) || this.isDisposed) {
      return;
    }
    if (!isVisible) {
      this._stop();
      return;
    }
    const receive = (message: TopicMessage): void => this._receive(message);
    const topics = [
      { topic: 'memory', group: this.group } as const,
      ...(this._readsDevices() ? [{ topic: 'devices' } as const] : [])
    ];
    this._following = topics.map(topic => this._service.subscribe(topic, { receive }));
    this._isLoaded = false;
    void this._load();
    void this._loadExecutions();
  }

  dispose(): void {
    this._stop();
    this._groups.changed.disconnect(this._update, this);
    this.steps.dispose();
    super.dispose();
  }

  protected emitChanged(): void {
    this._version += 1;
    super.emitChanged();
  }

  private _stop(): void {
    this._following?.forEach(subscription => subscription.dispose());
    this._following = null;
    this._held = [];
    this.steps.stop();
    clearTimeout(this._timer);
    this._timer = undefined;
  }

  private _find(): IGroup | null {
    return this._groups.groups.find(group => group.id === this.group) ?? null;
  }

  private _readsDevices(): boolean {
    return this._known !== null && this._known.devices.length > 0 && !this._known.nodes?.length;
  }

  private _update(): void {
    this._known = this._find() ?? this._known;
    if (!this._following) {
      return;
    }
    // With each cell and each rank that begins or ends.
    const { running = [], queued = [], ranks = [] } = this._known ?? {};
    const stamp = [...running, ...queued, Math.max(0, ...ranks.map(rank => rank.state_at)), this.isGone].join();
    if (stamp !== this._stamp && !this.isGone) {
      this._stamp = stamp;
      this._timer ??= setTimeout(() => void this._loadExecutions(), SETTLE_MS);
    }
    this.emitChanged();
  }

  private _receive(message: TopicMessage): void {
    if (message.type === 'memory') {
      this._clock.observe(message.sample.at);
      if (this._isLoaded) {
        this._add(message.sample);
      } else {
        this._held.push(message.sample);
      }
      this.emitChanged();
    } else if (message.type === 'devices') {
      const at = this.now();
      for (const { accelerator, index, utilization_percent, power_watts } of message.devices) {
        this._addReadings({
          accelerator,
          index,
          times: [at],
          utilization_percent: [utilization_percent],
          power_watts: [power_watts]
        });
      }
    }
  }

  private _add(sample: IMemorySample): void {
    this.columns.add(sample);
    if (sample.seen && sample.seen_at !== undefined) {
      this.sights.add({ at: sample.seen_at, seen: sample.seen });
      this.sights.drop(sample.at - HOUR);
    }
  }

  private _addReadings(read: IDeviceSamples): void {
    const key = `${read.accelerator} ${read.index}`;
    const known = this._devices.get(key) ?? { ...read, times: [], utilization_percent: [], power_watts: [] };
    const first = read.times.findIndex(at => at > (known.times[known.times.length - 1] ?? 0));
    if (first >= 0) {
      const kept = <T>(old: T[], fresh: T[]): T[] => [...old, ...fresh.slice(first)].slice(-MAX_READINGS);
      this._devices.set(key, {
        ...known,
        times: kept(known.times, read.times),
        utilization_percent: kept(known.utilization_percent, read.utilization_percent),
        power_watts: kept(known.power_watts, read.power_watts)
      });
    }
  }

  /** Read what is newer than what is there, a page at a time: one answer with all would block page and server. */
  private async _load(): Promise<void> {
    const following = this._following;
    try {
      let more = true;
      while (more && this._following === following && !this.isDisposed) {
        const page = await this._service.samples(this.group, { since: this.columns.last });
        more = page.more && page.times.length > 0;
        this.columns.append(page);
        page.seen.forEach(look => this.sights.add(look));
        page.devices.forEach(readings => this._addReadings(readings));
        this._error = null;
        this.emitChanged();
      }
    } catch (reason) {
      this._error = reason as DistError;
    }
    if (this._following === following && !this.isDisposed) {
      this._isLoaded = true;
      this._held.splice(0).forEach(sample => this._add(sample));
      this.emitChanged();
    }
  }

  private async _loadExecutions(): Promise<void> {
    this._timer = undefined; // what changes meanwhile is asked for again
    try {
      const since = this.now() - HOUR;
      const { executions } = await this._service.executions(this.group);
      this._executions = executions.filter(({ silent, ended_at }) => !silent && (ended_at ?? Infinity) > since);
      this._bands = bandsOf(this._executions);
      this._firstBegin = Math.min(Infinity, ...this._executions.map(({ started_at }) => started_at ?? Infinity));
    } catch (reason) {
      console.debug('jupyter_dist: could not list the executions', reason);
    }
    if (!this.isDisposed) {
      this.emitChanged();
    }
    if (this._following) {
      void this.steps.follow(this._executions, () => this.now());
    }
  }

  private _bands = new Map<number, IBand[]>();
  private readonly _devices = new Map<string, IDeviceSamples>();
  private _error: IErrorBody | null = null;
  private _executions: readonly IExecution[] = [];
  private _firstBegin = Infinity;
  private _following: IDisposable[] | null = null;
  private _held: IMemorySample[] = [];
  private _isLoaded = false;
  private _known: IGroup | null;
  private _stamp = '';
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _version = 0;
}
