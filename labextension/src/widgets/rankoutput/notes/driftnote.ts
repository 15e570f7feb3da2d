/** A note in a cell's header: ranks that have not run the cell or missed it, that it was edited, can be undone, or was. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { checksum } from '../../../model/drift/checksum';
import type { MissedCells } from '../../../model/drift/missed';
import { countRanks } from '../../../model/format/ranks';
import { FINAL_STATES, IRanksBundle } from '../../../services/protocol';
import { clockTime } from '../../../model/state/saves';
import { formatBytes, formatSeconds } from '../../../model/format/quantities';
import type { IDistUndo } from '../../../tokens';
import { rankSetLabel } from '../items/itemrow';

/** A cell is compared with what ran when its user has paused. */
const PAUSE_MS = 300;

export interface IDriftNoteOptions {
  trans: TranslationBundle;
  missed: MissedCells;
  undo: IDistUndo;
  /** The cell whose output this is, if it is in a notebook. */
  cellOf(node: HTMLElement): ICodeCellModel | null;
  /** Show what ranks of a group have missed, and this execution among it. */
  catchUp(group: string, execution: string): void;
  /** Undo a cell of a notebook. */
  undoCell(group: string, cell: string): void;
  /** Do an undone cell of a notebook again. */
  redoCell(group: string, cell: string): void;
}

interface IPart {
  readonly kind: 'missed' | 'some' | 'edited' | 'undo' | 'undone' | 'redo';
  readonly text: string;
  readonly title: string;
  /** What its button does; without, it is no button. */
  readonly act?: () => void;
}

export class DriftNote implements IDisposable {
  constructor(private readonly _options: IDriftNoteOptions & { redraw: () => void }) {
    this.node.className = 'jpd-Drift';
    this.node.hidden = true;
    _options.undo.changed.connect(this._draw, this);
  }

  readonly node = document.createElement('div');

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether it has any. */
  get isSaid(): boolean {
    return this._isSaid;
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
    this._options.undo.changed.disconnect(this._draw, this);
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
    this._isSaid = parts.length > 0;
    const shape = parts.map(({ kind, text }) => `${kind} ${text}`).join('\n');
    if (shape !== this._shape) {
      this._shape = shape;
      this.node.hidden = parts.length === 0;
      // Elements are kept while their text is unchanged: one may have the focus.
      this.node.replaceChildren(...parts.map(part => this._element(part)));
      const isUndone = parts.some(({ kind }) => kind === 'undone');
      if (isUndone !== this._isUndone) {
        this._isUndone = isUndone;
        this._options.redraw(); // the header is shown of a cell that has news
      }
    }
  }

  private _partsOf(bundle: IRanksBundle): IPart[] {
    const { trans, missed } = this._options;
    const ranks = missed.by(bundle);
    const parts: IPart[] = this._undoParts(bundle);
    const catchUp = (): void => this._options.catchUp(bundle.group.id, bundle.execution_id);
    if (ranks) {
      const text = trans.__('Missed by %1: catch up\u2026', rankSetLabel(trans, ranks));
      const title = trans.__('This cell ran before the process of %1 began', rankSetLabel(trans, ranks));
      parts.push({ kind: 'missed', text, title, act: catchUp });
    }
    if (countRanks(bundle.ranks) < bundle.group.world_size) {
      const text = trans.__('%1 only', rankSetLabel(trans, bundle.ranks));
      const title = trans.__(
        '%1 ranks of %2: see what the others have not run',
        countRanks(bundle.ranks),
        bundle.group.world_size
      );
      parts.push({ kind: 'some', text, title, act: catchUp });
    }
    if (this._isEdited(bundle)) {
      const title = trans.__('The cell was edited since it ran on ranks');
      parts.push({ kind: 'edited', text: trans.__('edited since'), title });
    }
    return parts;
  }

  /** When it was undone, or a button to undo it. */
  private _undoParts({ group, execution_id: id }: IRanksBundle): IPart[] {
    const { trans, undo, undoCell, redoCell } = this._options;
    const note = undo.noteOn(group.id, id);
    if (note?.undoneAt) {
      const text = trans.__('Undone at %1', clockTime(note.undoneAt, Date.now() / 1000));
      const gone = undo.undone(group.id).find(({ execution_id: other }) => other === id)?.cell_id;
      const title = trans.__('Give variables what this cell had left in them; no code runs');
      return [
        { kind: 'undone', text, title: trans.__('Variables are as they were before this cell') },
        ...(gone ? [{ kind: 'redo' as const, text: trans.__('Redo'), title, act: () => redoCell(group.id, gone) }] : [])
      ];
    }
    const kept = undo.cells(group.id).find(({ execution_id: other }) => other === id);
    const cell = kept?.cell_id;
    // Groups of 0.3 do not know whether it changed anything.
    if (!kept || !cell || kept.cost.changed === false) {
      return [];
    }
    const { bytes, milliseconds } = kept.cost;
    const title = trans.__(
      'Undo this cell and those after it. Keeping that took %1 and %2 before the cell.',
      formatBytes(bytes),
      formatSeconds(milliseconds / 1000)
    );
    return [{ kind: 'undo', text: trans.__('Undo\u2026'), title, act: () => undoCell(group.id, cell) }];
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

  private _element({ kind, text, title, act }: IPart): HTMLElement {
    const node = document.createElement(act ? 'button' : 'span');
    node.className = `jpd-Drift-${kind}`;
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

  private _bundle: IRanksBundle | null = null;
  private _cell: ICodeCellModel | null = null;
  private _checksum = '';
  private _isDisposed = false;
  private _isSaid = false;
  private _isUndone = false;
  private _pause: ReturnType<typeof setTimeout> | undefined;
  private _shape = '';
  private _source: string | null = null;
}
