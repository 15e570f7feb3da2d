/** The Ranks sidebar: devices, groups, and the form for a new group. */
import { addIcon, Button, ReactWidget } from '@jupyterlab/ui-components';
import { PromiseDelegate } from '@lumino/coreutils';
import { ISignal, Signal } from '@lumino/signaling';
import type { Message } from '@lumino/messaging';
import React, { useEffect, useState } from 'react';
import type { IGroup } from '../../services/protocol';
import { useSignal } from '../hooks';
import { ranksIcon } from '../icons';
import {
  DEFAULT_OPTIONS,
  ISidebarContext,
  ISidebarOptions,
  SidebarContext,
  useSidebar
} from './context';
import { DevicesSection } from './devices';
import { GroupCard, IconButton } from './groupcard';
import { AddedSections } from './addedsections';
import { Section } from './section';
import { StartForm } from './startform/startform';

export class RanksSidebar extends ReactWidget {
  constructor(context: ISidebarContext) {
    super();
    this.addClass('jpd-Sidebar');
    this.id = 'jupyter-dist-ranks';
    this.title.icon = ranksIcon;
    this.title.caption = context.trans.__('Ranks');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', context.trans.__('Ranks'));
    this._context = context;
  }

  /** Emitted when state changed that is not part of a model. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get options(): ISidebarOptions {
    return this._options;
  }
  set options(options: ISidebarOptions) {
    this._options = options;
    this._changed.emit();
  }

  /** Whether the form for a new group is open. */
  get isFormOpen(): boolean {
    return this._form !== null;
  }

  /** The notebook the form was opened for; null: the current one. */
  get notebook(): string | null {
    return this._notebook;
  }

  /** Open the form, optionally for a notebook. Resolves when it closes, with the group that was started, or null. */
  openForm(notebook: string | null): Promise<IGroup | null> {
    this._form?.resolve(null);
    this._form = new PromiseDelegate();
    this._notebook = notebook;
    this._changed.emit();
    return this._form.promise;
  }

  closeForm(started: IGroup | null): void {
    this._form?.resolve(started);
    this._form = null;
    this._changed.emit();
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._form?.resolve(null);
      Signal.clearData(this);
      super.dispose();
    }
  }

  protected render(): React.ReactElement {
    return (
      <SidebarContext.Provider value={this._context}>
        <Sidebar widget={this} />
      </SidebarContext.Provider>
    );
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._changed.emit();
    void this._warm();
  }

  protected onAfterHide(message: Message): void {
    super.onAfterHide(message);
    // Render nothing, so that no samples are taken while it is hidden.
    this._changed.emit();
  }

  /** Preload, so that the first start is as fast as later ones. The form reports failures when they matter. */
  private async _warm(): Promise<void> {
    if (this._isWarmed || !this._options.warm) {
      return;
    }
    this._isWarmed = true;
    const { groups, service } = this._context;
    try {
      await groups.ready;
      const known = await service.environments();
      const usable = known.environments.some(e => e.name === known.default && e.problem === null);
      if (known.default && usable) {
        await service.warmEnvironment(known.default);
      }
    } catch (reason) {
      console.debug('jupyter_dist: could not preload the default environment', reason);
    }
  }

  private readonly _context: ISidebarContext;
  private readonly _changed = new Signal<this, void>(this);
  private _options = DEFAULT_OPTIONS;
  private _form: PromiseDelegate<IGroup | null> | null = null;
  private _isWarmed = false;
  private _notebook: string | null = null;
}

function Sidebar({ widget }: { widget: RanksSidebar }): React.ReactElement | null {
  useSignal(widget.changed);
  return widget.isVisible ? <Content widget={widget} /> : null;
}

function Content({ widget }: { widget: RanksSidebar }): React.ReactElement {
  const { devices, groups, sections, trans } = useSidebar();
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
          <IconButton
            icon={addIcon}
            label={trans.__('Start a group')}
            onClick={() => void widget.openForm(null)}
          />
        }
      >
        {widget.isFormOpen && (
          <StartForm
            ranks={widget.options.ranks}
            onClose={() => widget.closeForm(null)}
            onStarted={group => widget.closeForm(group)}
          />
        )}
        <Groups widget={widget} />
      </Section>
      <AddedSections sections={sections} />
    </div>
  );
}

function Groups({ widget }: { widget: RanksSidebar }): React.ReactElement | null {
  const { groups, monitors, trans } = useSidebar();
  useSignal(groups.changed);
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
  return widget.isFormOpen ? null : (
    <div className="jpd-Sidebar-empty">
      <p>{trans.__('No group is running. A group is a set of torch.distributed processes, called ranks, that run notebook cells.')}</p>
      <Button className="jp-mod-styled jp-mod-accept" minimal={false} onClick={() => void widget.openForm(null)}>
        {trans.__('Start a group')}
      </Button>
    </div>
  );
}

/** Shows when the state is out of date. Delayed, because every page starts unconnected. */
function Connection(): React.ReactElement | null {
  const { groups, trans } = useSidebar();
  useSignal(groups.changed);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    const timer = groups.connected ? 0 : window.setTimeout(() => setLate(true), 2000);
    return () => window.clearTimeout(timer);
  }, [groups.connected]);
  return groups.connected || !isLate ? null : (
    <p className="jpd-Sidebar-offline" role="status">
      {trans.__('Not connected to the server. Showing the last known state; reconnecting\u2026')}
    </p>
  );
}
