/** The details about where the time of a cell goes: a region below the cell's header, loaded when it is first opened. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { PaceModel } from './pacemodel';
import { loaded } from '../../../services/errors';
import type { ICodeLine, IPace } from '../../../services/protocol';
import { isRendered } from '../../../widgets/base/focus';

export interface IPacePanelOptions {
  trans: TranslationBundle;
  fetch(): Promise<IPace>;
  goTo(place: ICodeLine): void;
}

export class PacePanel {
  constructor(private readonly _options: IPacePanelOptions) {
    const { trans, fetch } = _options;
    this.node.id = `jpd-pace-${nextId++}`;
    this.node.className = 'jpd-Pace';
    this.node.hidden = true;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Where the time goes'));
    // In a notebook's command mode Enter edits the cell; here it presses a button.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this.node.addEventListener('keydown', event => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        this.close();
      }
    });
    this.model = new PaceModel({
      fetch,
      isVisible: () => this.node.isConnected && isRendered(this.node) && !document.hidden
    });
  }

  readonly model: PaceModel;
  readonly node = document.createElement('div');

  /** A button that opens and closes the details. */
  createOpener(className: string, label: string): HTMLButtonElement {
    const opener = document.createElement('button');
    opener.type = 'button';
    opener.className = className;
    opener.textContent = label;
    opener.dataset.lmSuppressShortcuts = 'true';
    opener.setAttribute('aria-controls', this.node.id);
    opener.setAttribute('aria-expanded', 'false');
    opener.addEventListener('click', () => (this.model.isOpen ? this.close() : void this._open(opener)));
    this._openers.push(opener);
    return opener;
  }

  close(): void {
    this.model.close();
    const hadFocus = this.node.contains(document.activeElement);
    this._mark(false);
    if (hadFocus) {
      const visible = this._openers.find(isRendered);
      (this._opener && isRendered(this._opener) ? this._opener : visible)?.focus();
    }
  }

  dispose(): void {
    this.model.dispose();
    this._unmount?.();
  }

  private async _open(opener: HTMLButtonElement): Promise<void> {
    const { trans, goTo } = this._options;
    this._opener = opener;
    this._mark(true);
    this.model.open();
    if (this._unmount) {
      return;
    }
    this.node.textContent = trans.__('Loading\u2026');
    try {
      const { mountPace } = await loaded(import(/* webpackChunkName: "pace" */ './paceview'));
      if (!this.model.isDisposed && !this._unmount) {
        this._unmount = mountPace(this.node, { model: this.model, trans, goTo, onClose: () => this.close() });
      }
    } catch (reason) {
      this.node.textContent = (reason as Error).message;
    }
  }

  private _mark(isOpen: boolean): void {
    this.node.hidden = !isOpen;
    this._openers.forEach(opener => opener.setAttribute('aria-expanded', String(isOpen)));
  }

  private _opener: HTMLElement | null = null;
  private readonly _openers: HTMLButtonElement[] = [];
  private _unmount: (() => void) | null = null;
}

let nextId = 0;
