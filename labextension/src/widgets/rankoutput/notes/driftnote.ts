/** A note in a cell's header where ranks differ: some have not run the cell, some missed it, or it was edited. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { checksum } from '../../../model/drift/checksum';
import type { MissedCells } from '../../../model/drift/missed';
import { countRanks } from '../../../model/format/ranks';
import { FINAL_STATES, IRanksBundle } from '../../../services/protocol';
import { rankSetLabel } from '../items/itemrow';

/** A cell is compared with what ran when its user has paused. */
const PAUSE_MS = 300;

export interface IDriftNoteOptions {
  trans: TranslationBundle;
  missed: MissedCells;
  /** The cell whose output this is, if it is in a notebook. */
  cellOf(node: HTMLElement): ICodeCellModel | null;
  /** Show what ranks of a group have missed, and this execution among it. */
  catchUp(group: string, execution: string): void;
}

interface IPart {
  readonly kind: 'missed' | 'some' | 'edited';
  readonly text: string;
  readonly title: string;
}

export class DriftNote implements IDisposable {
  constructor(private readonly _options: IDriftNoteOptions) {
    this.node.className = 'jpd-Drift';
    this.node.hidden = true;
  }

  readonly node = document.createElement('div');

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Show the notes on an execution; none while it runs, or where the file is not trusted. */
  update(bundle: IRanksBundle, isTrusted: boolean): void {
    this._bundle = isTrusted && FINAL_STATES.has(bundle.state) ? bundle : null;
    if (this._bundle?.code_checksum) {
      this._followCell();
    }
    this._draw();
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._pause);
    this._cell?.contentChanged.disconnect(this._onEdited, this);
    this._cell = null;
  }

  private _followCell(): void {
    if (!this._cell && this.node.isConnected) {
      this._cell = this._options.cellOf(this.node);
      this._cell?.contentChanged.connect(this._onEdited, this);
    }
  }

  private _onEdited(): void {
    clearTimeout(this._pause);
    this._pause = setTimeout(() => this._draw(), PAUSE_MS);
  }

  private _draw(): void {
    const parts = this._bundle ? this._partsOf(this._bundle) : [];
    const shape = parts.map(({ kind, text }) => `${kind} ${text}`).join('\n');
    if (shape !== this._shape) {
      this._shape = shape;
      this.node.hidden = parts.length === 0;
      // Elements are kept while their text is unchanged: one may have the focus.
      this.node.replaceChildren(...parts.map(part => this._element(part)));
    }
  }

  private _partsOf(bundle: IRanksBundle): IPart[] {
    const { trans, missed } = this._options;
    const ranks = missed.by(bundle);
    const parts: IPart[] = [];
    if (ranks) {
      const text = trans.__('Missed by %1: catch up\u2026', rankSetLabel(trans, ranks));
      const title = trans.__('This cell ran before the process of %1 began', rankSetLabel(trans, ranks));
      parts.push({ kind: 'missed', text, title });
    }
    if (countRanks(bundle.ranks) < bundle.group.world_size) {
      const text = trans.__('%1 only', rankSetLabel(trans, bundle.ranks));
      const title = trans.__(
        '%1 ranks of %2: see what the others have not run',
        countRanks(bundle.ranks),
        bundle.group.world_size
      );
      parts.push({ kind: 'some', text, title });
    }
    if (this._isEdited(bundle)) {
      const title = trans.__('The cell was edited since it ran on ranks');
      parts.push({ kind: 'edited', text: trans.__('edited since'), title });
    }
    return parts;
  }

  private _isEdited({ code_checksum: ran }: IRanksBundle): boolean {
    if (!ran || !this._cell || this._cell.isDisposed) {
      return false;
    }
    const source = this._cell.sharedModel.getSource();
    if (source !== this._source) {
      this._source = source;
      this._checksum = checksum(source);
    }
    return this._checksum !== ran;
  }

  private _element({ kind, text, title }: IPart): HTMLElement {
    const node = document.createElement(kind === 'edited' ? 'span' : 'button');
    node.className = `jpd-Drift-${kind}`;
    node.textContent = text;
    node.title = title;
    if (node instanceof HTMLButtonElement) {
      node.type = 'button';
      // In a notebook's command mode Enter edits the cell; here it presses the button.
      node.dataset.lmSuppressShortcuts = 'true';
      node.addEventListener(
        'click',
        () => this._bundle && this._options.catchUp(this._bundle.group.id, this._bundle.execution_id)
      );
    }
    return node;
  }

  private _bundle: IRanksBundle | null = null;
  private _cell: ICodeCellModel | null = null;
  private _checksum = '';
  private _isDisposed = false;
  private _pause: ReturnType<typeof setTimeout> | undefined;
  private _shape = '';
  private _source: string | null = null;
}
