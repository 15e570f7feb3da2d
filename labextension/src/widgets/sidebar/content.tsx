/** What the sidebar shows; loaded when it is shown for the first time. */
import { addIcon, Button } from '@jupyterlab/ui-components';
import React, { useEffect, useState } from 'react';
import type { IGroup, IStartRequest } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';
import { useSignal } from '../base/hooks';
import { AddedSections } from './addedsections';
import { ISidebarOptions, useSidebar } from './context';
import { DevicesSection } from './devices';
import { GroupCard, IconButton } from './groups/groupcard';
import { Section } from './section';
import type { OpenForm } from './startform/openform';
import { StartForm } from './startform/startform';

/** The sidebar, as far as its content needs it: it holds the form for a new group. */
export interface ISidebarForms {
  readonly form: OpenForm | null;
  readonly formCount: number;
  readonly options: ISidebarOptions;
  openForm(notebook: string | null): Promise<IGroup | null>;
  closeForm(form: OpenForm, started: IGroup | null): void;
  start(form: OpenForm, request: IStartRequest): Promise<void>;
}

export function Content({ widget }: { widget: ISidebarForms }): React.ReactElement {
  const { devices, groups, sections, trans } = useSidebar();
  const { form } = widget;
  useSignal(groups.changed);
  useEffect(() => {
    const watching = devices.watch();
    return () => watching.dispose();
  }, [devices]);
  return (
    <div data-connected={groups.connected}>
      <Connection />
      <Section title={trans.__('Devices')}>
        <DevicesSection />
      </Section>
      <Section
        title={trans.__('Groups')}
        button={
          <IconButton icon={addIcon} label={trans.__('Start a group')} onClick={() => void widget.openForm(null)} />
        }
      >
        {form && (
          <StartForm
            key={widget.formCount}
            open={form}
            ranks={widget.options.ranks}
            onClose={() => widget.closeForm(form, null)}
            onSubmit={request => void widget.start(form, request)}
          />
        )}
        <Groups widget={widget} />
      </Section>
      <AddedSections sections={sections} />
    </div>
  );
}

function Groups({ widget }: { widget: ISidebarForms }): React.ReactElement | null {
  const { groups, monitors, trans } = useSidebar();
  useSignal(groups.changed);
  const areKnown = useAreKnown(groups);
  const current = groups.groups;
  useEffect(() => monitors.update(current), [monitors, current]);
  if (current.length > 0) {
    return (
      <>
        {current.map(group => (
          <GroupCard key={group.id} group={group} charts={widget.options.charts} />
        ))}
      </>
    );
  }
  if (!areKnown) {
    return <p className="jpd-Sidebar-quiet">{trans.__('Asking the server for its groups\u2026')}</p>;
  }
  return widget.form ? null : (
    <div className="jpd-Sidebar-empty">
      <p>
        {trans.__(
          'No group is running. A group is a set of torch.distributed processes, called ranks, that run notebook cells.'
        )}
      </p>
      <Button className="jp-mod-styled jp-mod-accept" minimal={false} onClick={() => void widget.openForm(null)}>
        {trans.__('Start a group')}
      </Button>
    </div>
  );
}

/** Shows when the state is out of date, and why. Delayed, because every page starts unconnected. */
function Connection(): React.ReactElement | null {
  const { groups, service, trans } = useSidebar();
  useSignal(groups.changed);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    const timer = groups.connected ? 0 : window.setTimeout(() => setLate(true), 2000);
    return () => window.clearTimeout(timer);
  }, [groups.connected]);
  if (groups.connected || !isLate) {
    return null;
  }
  const seconds = service.unopenedSeconds;
  return (
    <p className="jpd-Sidebar-offline" role="status">
      {seconds === null
        ? trans.__('Not connected to the server. Showing the last known state; reconnecting\u2026')
        : trans.__(
            'Not connected to the server: its WebSocket did not open within %1 s. A proxy may not pass WebSockets on. Showing the last known state; trying again\u2026',
            seconds
          )}
    </p>
  );
}

/** Whether all groups have come since the page was loaded. */
function useAreKnown(groups: IDistGroups): boolean {
  const [areKnown, setKnown] = useState(groups.groups.length > 0);
  useEffect(() => {
    let isMounted = true;
    void groups.ready.then(() => isMounted && setKnown(true));
    return () => {
      isMounted = false;
    };
  }, [groups]);
  return areKnown;
}
