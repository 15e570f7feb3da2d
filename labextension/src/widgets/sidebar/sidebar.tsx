/** The Ranks sidebar: devices, groups, and the form for a new group. Its content is in content.tsx. */
import { ReactWidget } from '@jupyterlab/ui-components';
import { ISignal, Signal } from '@lumino/signaling';
import type { Message } from '@lumino/messaging';
import React from 'react';
import { errorOf } from '../../services/errors';
import type { FilledForm } from '../../model/groups/startvalues';
import type { IGroup, IStartRequest } from '../../services/protocol';
import { lazily, notifyError } from '../base/errornote';
import { useSignal } from '../base/hooks';
import { ranksIcon } from '../base/icons';
import { beginnings } from '../starting/beginnings';
import { DEFAULT_OPTIONS, ISidebarContext, ISidebarOptions, SidebarContext } from './context';
import { OpenForm } from './startform/openform';

export class RanksSidebar extends ReactWidget {
  constructor(context: ISidebarContext) {
    super();
    this.addClass('jpd-Sidebar');
    this.id = 'jupyter-dist-ranks';
    this.title.icon = ranksIcon;
    this.title.caption = context.trans.__('Ranks');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', context.trans.__('Ranks'));
    this.node.tabIndex = -1;
    this._context = context;
  }

  /** Take the focus: the form's first field, if there is a form. */
  focus(): void {
    const field = this.node.querySelector<HTMLElement>('.jpd-StartForm :is(input, select)');
    (field ?? this.node).focus();
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

  /** The form for a new group; null: none is open. */
  get form(): OpenForm | null {
    return this._form;
  }

  /** Counts forms: each is a new one. */
  get formCount(): number {
    return this._formCount;
  }

  /** The notebook the form was opened for; null: the current one. */
  get notebook(): string | null {
    return this._form?.notebook ?? null;
  }

  /**
   * Open the form, optionally for a notebook. Resolves when it closes, with the group that was started, or null. It takes
   * the focus only from the element `from`, so not from where the user went meanwhile.
   */
  openForm(
    notebook: string | null,
    wanted: FilledForm | null = null,
    from: Element | null = document.activeElement
  ): Promise<IGroup | null> {
    // A form whose group is being started gets the answer to that request.
    if (this._form && !this._form.isPending) {
      this._form.answer(null);
    }
    this._form = new OpenForm({ notebook, wanted, from });
    this._formCount += 1;
    this._changed.emit();
    return this._form.answered;
  }

  /** Close a form; if another one was opened meanwhile, that one stays. */
  closeForm(form: OpenForm, started: IGroup | null): void {
    form.answer(started);
    if (form !== this._form) {
      return;
    }
    // The form's opener may take the focus back (focus.ts), and checks before the form is gone.
    const { activeElement } = document;
    if (this.node.contains(activeElement)) {
      (activeElement as HTMLElement).blur();
    }
    this._form = null;
    this._changed.emit();
  }

  /** Start a group with a form's fields, and close the form. */
  async start(form: OpenForm, request: IStartRequest): Promise<void> {
    form.begin();
    try {
      const group = await this._context.service.start(request);
      for (const { id, begin } of beginnings()) {
        const chosen = form.chosen.get(id);
        if (chosen !== undefined) {
          void begin(group, chosen);
        }
      }
      this.closeForm(form, group);
    } catch (reason) {
      form.fail(errorOf(reason));
      if (form !== this._form) {
        form.answer(null);
      }
      if (form !== this._form || !this.isVisible) {
        notifyError(reason);
      }
    }
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._form?.answer(null);
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
        await service.warm(known.default);
      }
    } catch (reason) {
      console.debug('jupyter_dist: could not preload the default environment', reason);
    }
  }

  private readonly _context: ISidebarContext;
  private readonly _changed = new Signal<this, void>(this);
  private _options = DEFAULT_OPTIONS;
  private _form: OpenForm | null = null;
  private _isWarmed = false;
  private _formCount = 0;
}

const Content = lazily(async () => (await import(/* webpackChunkName: "sidebar" */ './content')).Content);

function Sidebar({ widget }: { widget: RanksSidebar }): React.ReactElement | null {
  useSignal(widget.changed);
  return widget.isVisible ? <Content widget={widget} /> : null;
}
