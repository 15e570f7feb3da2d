/** Notes in a cell's header: ranks that have not run the cell or missed it, and that it was edited since. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { TranslationBundle } from '@jupyterlab/translation';
import { checksum } from '../../model/format/checksum';
import { countRanks } from '../../model/format/ranks';
import { FINAL_STATES, IRanksBundle } from '../../services/protocol';
import type { IHeaderNote, INoteContext, IShownCell } from '../../tokens';
import { rankSetLabel } from '../../widgets/rankoutput/items/itemrow';
import { IRowNote, RowNotes } from '../../widgets/rankoutput/notes/rownotes';
import type { MissedCells } from './model/missed';

/** A cell is compared with what ran when its user has paused. */
const PAUSE_MS = 300;

export interface IDriftNoteOptions extends INoteContext {
  trans: TranslationBundle;
  missed: MissedCells;
  /** The cell whose output this is, if it is in a notebook. */
  cellOf(node: HTMLElement): ICodeCellModel | null;
  /** Show what ranks of a group have missed, and this execution among it. */
  catchUp(group: string, execution: string): void;
}

export class DriftNote implements IHeaderNote {
  constructor(private readonly _options: IDriftNoteOptions) {
    _options.missed.changed.connect(this._options.redraw);
  }

  get label(): HTMLElement {
    return this._notes.node;
  }

  get isShown(): boolean {
    return this._isSaid;
  }

  /** Show the notes on an execution; none while it runs, or where the file is not trusted. */
  update({ bundle, isTrusted }: IShownCell): void {
    this._bundle = isTrusted && FINAL_STATES.has(bundle.state) ? bundle : null;
    if (this._bundle?.code_checksum) {
      this._followCell();
    }
    this._draw();
  }

  dispose(): void {
    this._options.missed.changed.disconnect(this._options.redraw);
    clearTimeout(this._pause);
    this._cell?.contentChanged.disconnect(this._onEdited, this);
    this._cell = null;
  }

  private _followCell(): void {
    if (!this._cell && this.label.isConnected) {
      this._cell = this._options.cellOf(this.label);
      this._cell?.contentChanged.connect(this._onEdited, this);
    }
  }

  private _onEdited(): void {
    clearTimeout(this._pause);
    this._pause = setTimeout(() => this._draw(), PAUSE_MS);
  }

  private _draw(): void {
    const notes = this._bundle ? this._notesOn(this._bundle) : [];
    this._isSaid = notes.length > 0;
    this._notes.update(notes);
  }

  private _notesOn(bundle: IRanksBundle): IRowNote[] {
    const { trans, missed } = this._options;
    const ranks = missed.by(bundle);
    const notes: IRowNote[] = [];
    const act = (): void => this._options.catchUp(bundle.group.id, bundle.execution_id);
    if (ranks) {
      const text = trans.__('Missed by %1: catch up\u2026', rankSetLabel(trans, ranks));
      const title = trans.__('This cell ran before the process of %1 began', rankSetLabel(trans, ranks));
      notes.push({ kind: 'missed', text, title, act });
    }
    if (countRanks(bundle.ranks) < bundle.group.world_size) {
      const text = trans.__('%1 only', rankSetLabel(trans, bundle.ranks));
      const title = trans.__(
        '%1 ranks of %2: see what the others have not run',
        countRanks(bundle.ranks),
        bundle.group.world_size
      );
      notes.push({ kind: 'some', text, title, act });
    }
    if (this._isEdited(bundle)) {
      const title = trans.__('The cell was edited since it ran on ranks');
      notes.push({ kind: 'edited', text: trans.__('edited since'), title });
    }
    return notes;
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

  private _bundle: IRanksBundle | null = null;
  private _cell: ICodeCellModel | null = null;
  private _checksum = '';
  private _isSaid = false;
  private readonly _notes = new RowNotes('jpd-Drift');
  private _pause: ReturnType<typeof setTimeout> | undefined;
  private _source: string | null = null;
}
