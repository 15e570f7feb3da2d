/** Short notes in the row of a cell's header: texts, and buttons. */

export interface IRowNote {
  readonly kind: string;
  readonly text: string;
  readonly title: string;
  /** What its button does; without, it is no button. */
  readonly act?: () => void;
}

export class RowNotes {
  constructor(className = '') {
    this.node.className = `jpd-RowNotes ${className}`.trim();
    this.node.hidden = true;
  }

  readonly node = document.createElement('div');

  /** Show these notes. Elements are kept while no text changes: one may have the focus. */
  update(notes: readonly IRowNote[]): void {
    const shape = notes.map(({ kind, text }) => `${kind} ${text}`).join('\n');
    if (shape !== this._shape) {
      this._shape = shape;
      this.node.hidden = notes.length === 0;
      this.node.replaceChildren(...notes.map(note => this._element(note)));
    }
  }

  private _element({ kind, text, title, act }: IRowNote): HTMLElement {
    const node = document.createElement(act ? 'button' : 'span');
    node.className = `jpd-RowNote-${kind}`;
    node.textContent = text;
    // Its text may be cut where there is little room.
    node.title = `${text}: ${title}`;
    if (act && node instanceof HTMLButtonElement) {
      node.type = 'button';
      // In a notebook's command mode Enter edits the cell; here it presses the button.
      node.dataset.lmSuppressShortcuts = 'true';
      node.addEventListener('click', act);
    }
    return node;
  }

  private _shape = '';
}
