/** The Python stacks of all ranks, live while they are shown: ranks with equal ones once, the user's lines first. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { loaded } from '../../../services/errors';
import type { IRankStack } from '../../../services/protocol';
import { isRendered } from '../../../widgets/base/focus';

const EVERY_MS = 1000;

/** What was asked for, and what draws it. */
interface IDrawnStacks {
  stacks: IRankStack[];
  rows: typeof import('./stackrows');
}

export class StackList {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _fetch: () => Promise<IRankStack[]>
  ) {
    this.node.id = `jpd-stacks-${nextId++}`;
    this.node.className = 'jpd-Stacks';
    this.node.hidden = true;
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _trans.__('Stacks of all ranks'));
    this.button.type = 'button';
    this.button.className = 'jpd-Ranks-action jpd-Verdict-stacks';
    this.button.textContent = _trans.__('Stacks');
    this.button.title = _trans.__('Show the line that each rank is at, now');
    this.button.setAttribute('aria-controls', this.node.id);
    this.button.setAttribute('aria-expanded', 'false');
    this.button.addEventListener('click', () => (this._isOpen ? this.close() : this._open()));
  }

  readonly button = document.createElement('button');
  readonly node = document.createElement('div');

  close(): void {
    this._setOpen(false);
    clearTimeout(this._timer);
  }

  private _open(): void {
    this._setOpen(true);
    void this._refresh(++this._opening);
  }

  private _setOpen(isOpen: boolean): void {
    this._isOpen = isOpen;
    this.node.hidden = !isOpen;
    this.button.setAttribute('aria-expanded', String(isOpen));
  }

  private async _refresh(opening: number): Promise<void> {
    const isVisible = this.node.isConnected && isRendered(this.node);
    const shown = isVisible ? await this._ask() : null;
    if (!this._isOpen || opening !== this._opening) {
      return;
    }
    if (shown) {
      this._show(shown);
    }
    this._timer = setTimeout(() => void this._refresh(opening), EVERY_MS);
  }

  private async _ask(): Promise<IDrawnStacks | string> {
    try {
      const rows = loaded(import(/* webpackChunkName: "stacks" */ './stackrows'));
      return { stacks: await this._fetch(), rows: await rows };
    } catch (reason) {
      return this._trans.__('The stacks could not be read: %1', (reason as Error).message);
    }
  }

  /** Only what changed is replaced: text that is selected, and a part that was opened, stay. */
  private _show(shown: IDrawnStacks | string): void {
    const shape = JSON.stringify(typeof shown === 'string' ? shown : shown.stacks);
    if (shape === this._shape) {
      return;
    }
    this._shape = shape;
    if (typeof shown === 'string') {
      this.node.textContent = shown;
      return;
    }
    const { rows, stacks } = shown;
    const opened = new Set(
      [...this.node.querySelectorAll('details[open]')].map(part => (part as HTMLElement).dataset.ranks)
    );
    this.node.replaceChildren(...stacks.map(stack => rows.stackEntry(this._trans, stack, opened.has(stack.ranks))));
  }

  private _isOpen = false;
  private _opening = 0;
  private _shape = '';
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

let nextId = 0;
