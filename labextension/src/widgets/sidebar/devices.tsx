/** The devices with their processes, and the host. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { holders, IHolder } from '../../model/groups/devicemonitor';
import { formatBytes, formatPercent, fraction } from '../../model/format/quantities';
import type { IDevice, IHost } from '../../services/protocol';
import { useSignal } from '../base/hooks';
import { NotAnswered } from '../base/errornote';
import { useSidebar } from './context';
import { Meter } from './charts/meter';

export function DevicesSection(): React.ReactElement {
  const { devices, trans } = useSidebar();
  useSignal(devices.changed);
  const known = devices.devices;
  const failure = devices.error && (
    <NotAnswered
      what={trans.__('The devices could not be read.')}
      error={devices.error}
      again={() => void devices.refresh()}
    />
  );
  if (!known) {
    return failure ?? <p className="jpd-Sidebar-quiet">{trans.__('Reading the devices\u2026')}</p>;
  }
  return (
    <>
      {failure}
      <ul className="jpd-Devices" aria-label={trans.__('Devices')}>
        {known.devices.map(device => (
          <DeviceItem key={device.uuid || `${device.accelerator} ${device.index}`} device={device} />
        ))}
        <HostItem host={known.host} />
      </ul>
      {known.problems?.map(problem => (
        <p key={problem} className="jpd-Sidebar-offline" role="status">
          {problem}
        </p>
      ))}
      {known.devices.length === 0 && !known.problems?.length && (
        <p className="jpd-Sidebar-quiet">
          {trans.__('No accelerator was found on the machine of the Jupyter server: ranks there run on the CPU.')}
        </p>
      )}
      {known.processes_hidden && (
        <p className="jpd-Sidebar-quiet">{trans.__('Processes of other users or containers may not be listed.')}</p>
      )}
    </>
  );
}

function DeviceItem({ device }: { device: IDevice }): React.ReactElement {
  const { trans } = useSidebar();
  const memory = usedOfTotal(trans, device.memory_used_bytes, device.memory_total_bytes);
  return (
    <li className="jpd-Device">
      <div className="jpd-Device-title">
        <span className="jpd-Device-index">{device.index}</span>
        <span className="jpd-Device-name" title={device.uuid ?? undefined}>
          {device.name}
        </span>
        <span className="jpd-Device-number">{memory}</span>
      </div>
      <Meter
        label={trans.__('Memory of device %1', device.index)}
        value={fraction(device.memory_used_bytes, device.memory_total_bytes)}
        text={memory}
      />
      <div className="jpd-Device-now">
        <dl className="jpd-Device-facts">
          <Fact name={trans.__('Utilization')} value={formatPercent(device.utilization_percent)} />
          <Fact name={trans.__('Temperature')} value={celsius(device.temperature_celsius)} />
          <Fact name={trans.__('Power')} value={watts(device)} />
        </dl>
        <ul className="jpd-Holders" aria-label={trans.__('Processes on device %1', device.index)}>
          {holders(device).map(holder => (
            <HolderItem key={`${holder.group} ${holder.rank}`} holder={holder} />
          ))}
        </ul>
      </div>
    </li>
  );
}

function HolderItem({ holder }: { holder: IHolder }): React.ReactElement {
  const { trans } = useSidebar();
  const name =
    holder.group !== null
      ? trans.__('%1 / rank %2', holder.group, holder.rank ?? '?')
      : trans._n('%1 other', '%1 others', holder.processes, holder.processes);
  return (
    <li className="jpd-Holder" data-mine={holder.group !== null}>
      <span className="jpd-Holder-name" title={holder.names.join(', ')}>
        {name}
      </span>
      <span className="jpd-Holder-memory">{formatBytes(holder.memory_bytes)}</span>
    </li>
  );
}

function HostItem({ host }: { host: IHost }): React.ReactElement {
  const { trans } = useSidebar();
  const memory = usedOfTotal(trans, host.memory_used_bytes, host.memory_total_bytes);
  const cpu = trans.__('%1 of %2 CPUs', formatPercent(host.cpu_percent), host.cpu_count);
  const load = host.load_1m === null ? '-' : host.load_1m.toFixed(2);
  return (
    <li className="jpd-Device">
      <div className="jpd-Device-title">
        <span className="jpd-Device-name">{trans.__('Host memory')}</span>
        <span className="jpd-Device-number">{memory}</span>
      </div>
      <Meter
        label={trans.__('Host memory')}
        value={fraction(host.memory_used_bytes, host.memory_total_bytes)}
        text={memory}
      />
      <div className="jpd-Device-title">
        <span className="jpd-Device-name">{trans.__('CPU')}</span>
        <span className="jpd-Device-number" title={trans.__('1-minute load average: %1', load)}>
          {cpu}
        </span>
      </div>
      <Meter label={trans.__('CPU')} value={(host.cpu_percent ?? 0) / 100} text={cpu} mayBeFull />
    </li>
  );
}

function Fact({ name, value }: { name: string; value: string }): React.ReactElement {
  return (
    <div title={name}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function usedOfTotal(trans: TranslationBundle, used: number | null, total: number | null): string {
  return trans.__('%1 / %2', formatBytes(used), formatBytes(total));
}

function celsius(degrees: number | null): string {
  return degrees === null ? '-' : `${Math.round(degrees)} \u00b0C`;
}

function watts(device: IDevice): string {
  if (device.power_watts === null) {
    return '-';
  }
  const limit = device.power_limit_watts === null ? '' : ` / ${Math.round(device.power_limit_watts)}`;
  return `${Math.round(device.power_watts)}${limit} W`;
}
