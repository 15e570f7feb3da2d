/** The offer in a cell whose group is missing: start it, and run the notebook up to here. */
import type { TranslationBundle } from '@jupyterlab/translation';

export interface IOfferActions {
  start(): Promise<void>;
  /** Start it with what a part has for it; left out where none has. */
  startWith?: { label: string; title: string; start(): Promise<void> };
  runUpToHere(): Promise<void>;
  /** Open the form, filled in. */
  change(): Promise<void>;
}

export class CellOffer {
  constructor(private readonly _trans: TranslationBundle) {
    this.node.className = 'jpd-CellOffer';
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', _trans.__('Start the group of this cell'));
    // In a notebook's command mode Enter edits the cell; here it presses a button.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this._details.className = 'jpd-CellOffer-details';
    const buttons = document.createElement('div');
    buttons.className = 'jpd-CellOffer-buttons';
    this._start = this._button('start', () => this._actions?.start());
    const run = this._button('run', () => this._actions?.runUpToHere());
    run.textContent = _trans.__('Start and run up to here');
    run.title = _trans.__('Start the group, and run all cells from the first to this one');
    this._with = this._button('with', () => this._actions?.startWith?.start());
    this._with.hidden = true;
    const change = this._button('change', () => this._actions?.change());
    change.textContent = _trans.__('Change\u2026');
    change.title = _trans.__('Choose another environment, other devices or another number of ranks');
    buttons.append(this._start, this._with, run, change);
    this.node.append(buttons, this._details);
  }

  readonly node = document.createElement('div');

  update(label: string, details: readonly string[], actions: IOfferActions): void {
    this._actions = actions;
    this._start.textContent = label;
    this._with.hidden = actions.startWith === undefined;
    this._with.textContent = actions.startWith?.label ?? '';
    this._with.title = actions.startWith?.title ?? '';
    this._details.replaceChildren(...details.map(line));
    this._details.hidden = details.length === 0;
  }

  dispose(): void {
    this._actions = null;
    this.node.remove();
  }

  private _button(name: string, act: () => Promise<void> | undefined): HTMLButtonElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = `jpd-CellOffer-button jpd-CellOffer-${name}`;
    button.addEventListener('click', () => void (name === 'change' ? act() : this._press(act)));
    return button;
  }

  /** One press is one start. */
  private async _press(act: () => Promise<void> | undefined): Promise<void> {
    if (this.node.dataset.busy) {
      return;
    }
    this.node.dataset.busy = 'true';
    const label = this._start.textContent;
    this._start.textContent = this._trans.__('Starting\u2026');
    try {
      await act();
    } finally {
      delete this.node.dataset.busy;
      this._start.textContent = label;
    }
  }

  private _actions: IOfferActions | null = null;
  private readonly _details = document.createElement('ul');
  private readonly _with: HTMLButtonElement;
  private readonly _start: HTMLButtonElement;
}

function line(text: string): HTMLElement {
  const item = document.createElement('li');
  item.textContent = text;
  return item;
}
