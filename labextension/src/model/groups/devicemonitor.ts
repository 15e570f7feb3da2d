/** The devices and the host, followed while they are watched. */
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { errorOf } from '../../services/errors';
import type { IDevice, IDeviceProcess, IDevices, IErrorBody, TopicMessage } from '../../services/protocol';
import type { IService } from '../../services/service';

/** Processes on a device: one of our ranks, by name, or others. */
export interface IHolder {
  readonly group: string | null;
  readonly rank: number | null;
  readonly names: string[];
  readonly processes: number;
  readonly memory_bytes: number | null;
}

export class DevicesModel {
  constructor(service: IService) {
    this._service = service;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The last known devices, or null. */
  get devices(): IDevices | null {
    return this._devices;
  }

  /** Why the last reading failed; null if it did not. */
  get error(): IErrorBody | null {
    return this._error;
  }

  /** Follow until disposed. The first watcher also requests at once, without waiting for the next message. */
  watch(): IDisposable {
    this._watchers += 1;
    if (this._watchers === 1) {
      this._subscription = this._service.subscribe(
        { topic: 'devices' },
        { receive: message => this._receive(message) }
      );
      void this.refresh();
    }
    return new DisposableDelegate(() => this._release());
  }

  /** Request once. A failure keeps the last known devices. */
  async refresh(): Promise<IDevices | null> {
    try {
      this._set(await this._service.devices());
    } catch (reason) {
      this._fail(errorOf(reason));
    }
    return this._devices;
  }

  dispose(): void {
    this._subscription?.dispose();
    this._subscription = null;
    Signal.clearData(this);
  }

  private _receive(message: TopicMessage): void {
    if (message.type === 'devices') {
      this._set(message);
    } else if (message.type === 'error') {
      this._fail(message.error);
    }
  }

  private _set(devices: IDevices): void {
    this._devices = devices;
    this._error = null;
    this._changed.emit();
  }

  private _fail(error: IErrorBody): void {
    this._error = error;
    this._changed.emit();
  }

  private _release(): void {
    this._watchers -= 1;
    if (this._watchers === 0) {
      this._subscription?.dispose();
      this._subscription = null;
    }
  }

  private readonly _service: IService;
  private _devices: IDevices | null = null;
  private _error: IErrorBody | null = null;
  private _subscription: IDisposable | null = null;
  private _watchers = 0;
  private readonly _changed = new Signal<this, void>(this);
}

/** The processes on a device: each of our ranks separately, all others together. Largest first, others last. */
export function holders(device: IDevice): IHolder[] {
  const ours = device.processes.filter(process => process.group !== null);
  const others = device.processes.filter(process => process.group === null);
  const result = ours.map(process => holder([process])).sort((a, b) => (b.memory_bytes ?? 0) - (a.memory_bytes ?? 0));
  return others.length > 0 ? [...result, holder(others)] : result;
}

function holder(processes: IDeviceProcess[]): IHolder {
  const sizes = processes.map(p => p.memory_bytes).filter((b): b is number => b !== null);
  return {
    group: processes[0].group,
    rank: processes[0].rank,
    names: [...new Set(processes.map(p => p.name))].filter((n): n is string => n !== null),
    processes: processes.length,
    memory_bytes: sizes.length > 0 ? sizes.reduce((a, b) => a + b, 0) : null
  };
}
