/** The Ranks sidebar: devices, groups, and the form for a new group. What it shows is in content.tsx. */
import { ReactWidget } from '@jupyterlab/ui-components';
import { PromiseDelegate } from '@lumino/coreutils';
import { ISignal, Signal } from '@lumino/signaling';
import type { Message } from '@lumino/messaging';
import React, { lazy, Suspense } from 'react';
import { DistError, loaded } from '../../services/errors';
import type { FilledForm } from '../../model/groups/startform';
import type { IGroup } from '../../services/protocol';
import { ErrorNote } from '../errornote';
import { useSignal } from '../hooks';
import { ranksIcon } from '../icons';
import {
  DEFAULT_OPTIONS,
  ISidebarContext,
  ISidebarOptions,
  SidebarContext
} from './context';

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

  /** What the form is filled in with. */
  get wanted(): FilledForm | null {
    return this._wanted;
  }

  /** Counts forms: each is a new one. */
  get formCount(): number {
    return this._formCount;
  }

  /** The notebook the form was opened for; null: the current one. */
  get notebook(): string | null {
    return this._notebook;
  }

  /** Open the form, optionally for a notebook. Resolves when it closes, with the group that was started, or null. */
  openForm(notebook: string | null, wanted: FilledForm | null = null): Promise<IGroup | null> {
    this._form?.resolve(null);
    this._form = new PromiseDelegate();
    this._notebook = notebook;
    this._wanted = wanted;
    this._formCount += 1;
    this._changed.emit();
    return this._form.promise;
  }

  closeForm(started: IGroup | null): void {
    // Whoever opened it may take the focus back (focus.ts), and asks before the form is gone.
    const { activeElement } = document;
    if (this.node.contains(activeElement)) {
      (activeElement as HTMLElement).blur();
    }
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
  private _formCount = 0;
  private _notebook: string | null = null;
  private _wanted: FilledForm | null = null;
}

const Content = lazy(async () => {
  try {
    return { default: (await loaded(import(/* webpackChunkName: "sidebar" */ './content'))).Content };
  } catch (reason) {
    return { default: () => <ErrorNote error={reason as DistError} /> };
  }
});

function Sidebar({ widget }: { widget: RanksSidebar }): React.ReactElement | null {
  useSignal(widget.changed);
  return widget.isVisible ? (
    <Suspense fallback={null}>
      <Content widget={widget} />
    </Suspense>
  ) : null;
}
