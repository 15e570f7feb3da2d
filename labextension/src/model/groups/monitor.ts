/**
 * A group's memory over time, and the cells it runs. Samples are only taken while it is watched.
 */
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import type { IClock } from '../../tokens';
import type { IExecution, IGroup, IMemorySample, TopicMessage } from '../../services/protocol';
import type { IService } from '../../services/service';
import { MemoryModel } from './memorymodel';

/** How often the memory of a group that runs nothing is drawn: a frame a second costs an idle page 1 % of a core. */
const IDLE_SECONDS = 5;

export class GroupMonitor {
  constructor(service: IService, clock: IClock, group: string) {
    this.memory = new MemoryModel();
    this._service = service;
    this._clock = clock;
    this._group = group;
  }

  readonly memory: MemoryModel;

  /** Emitted when the executions change. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The executions of the group, oldest first, without code. */
  get executions(): readonly IExecution[] {
    return this._executions;
  }

  execution(id: string | null): IExecution | null {
    return this._executions.find(execution => execution.id === id) ?? null;
  }

  /** Follow the memory until disposed. */
  watch(): IDisposable {
    this._watchers += 1;
    if (this._watchers === 1) {
      this._subscription = this._service.subscribe(
        { topic: 'memory', group: this._group },
        { receive: message => this._receive(message) }
      );
      void this._loadPast();
    }
    return new DisposableDelegate(() => {
      this._watchers -= 1;
      if (this._watchers === 0) {
        this._subscription?.dispose();
        this._subscription = null;
      }
    });
  }

  /** Set the group's new state. */
  update(group: IGroup): void {
    if (group.generation !== this._generation) {
      this._generation = group.generation;
      this._held = [];
      this.memory.clear();
    }
    const isIdle = group.running.length === 0;
    if (isIdle !== this._isIdle) {
      this._isIdle = isIdle;
      this._drawnAt = -Infinity; // what a cell left is shown with the next sample
    }
    const known = new Set(this._executions.map(execution => execution.id));
    const wanted = [...group.running, ...group.queued].join();
    if (wanted !== this._wanted || group.running.some(id => !known.has(id))) {
      this._wanted = wanted;
      void this._loadExecutions();
    }
  }

  dispose(): void {
    this._isDisposed = true;
    this._subscription?.dispose();
    this.memory.dispose();
    Signal.clearData(this);
  }

  private _receive(message: TopicMessage): void {
    if (message.type === 'memory') {
      const { at } = message.sample;
      this._clock.observe(at);
      this._held.push(message.sample);
      if (!this._isIdle || at >= this._drawnAt + IDLE_SECONDS) {
        this._drawnAt = at;
        this.memory.add(...this._held.splice(0));
      }
    }
  }

  private async _loadPast(): Promise<void> {
    try {
      const { samples } = await this._service.lastSamples(this._group);
      if (!this._isDisposed) {
        this.memory.add(...samples);
      }
    } catch (reason) {
      console.debug('jupyter_dist: could not load past memory samples', reason);
    }
  }

  private async _loadExecutions(): Promise<void> {
    if (this._loading) {
      this._again = true;
      return;
    }
    this._loading = true;
    try {
      this._executions = (await this._service.executions(this._group)).executions;
      this._changed.emit();
    } catch (reason) {
      console.debug('jupyter_dist: could not list the executions', reason);
    }
    this._loading = false;
    if (this._again && !this._isDisposed) {
      this._again = false;
      void this._loadExecutions();
    }
  }

  private readonly _service: IService;
  private readonly _clock: IClock;
  private readonly _group: string;
  private _executions: readonly IExecution[] = [];
  private _generation = 0;
  private _isIdle = true;
  private _held: IMemorySample[] = [];
  private _drawnAt = -Infinity;
  private _wanted = '';
  private _loading = false;
  private _again = false;
  private _isDisposed = false;
  private _watchers = 0;
  private _subscription: IDisposable | null = null;
  private readonly _changed = new Signal<this, void>(this);
}

/** A monitor for each running group. */
export class GroupMonitors {
  constructor(service: IService, clock: IClock) {
    this._service = service;
    this._clock = clock;
  }

  /** The monitor of a group. */
  of(group: IGroup): GroupMonitor {
    let monitor = this._monitors.get(group.id);
    if (!monitor) {
      monitor = new GroupMonitor(this._service, this._clock, group.id);
      this._monitors.set(group.id, monitor);
    }
    return monitor;
  }

  /** Update all monitors; dispose the monitors of groups that are gone. */
  update(groups: readonly IGroup[]): void {
    const living = new Set(groups.map(group => group.id));
    for (const [id, monitor] of this._monitors) {
      if (!living.has(id)) {
        monitor.dispose();
        this._monitors.delete(id);
      }
    }
    groups.forEach(group => this.of(group).update(group));
  }

  dispose(): void {
    this._monitors.forEach(monitor => monitor.dispose());
    this._monitors.clear();
  }

  private readonly _service: IService;
  private readonly _clock: IClock;
  private readonly _monitors = new Map<string, GroupMonitor>();
}
