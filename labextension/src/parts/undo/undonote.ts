/** Notes in a cell's header: that the cell can be undone, or was. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatBytes, formatSeconds } from '../../model/format/quantities';
import { clockTime } from '../../model/format/quantities';
import { FINAL_STATES, IRanksBundle } from '../../services/protocol';
import type { IHeaderNote, INoteContext, IShownCell } from '../../tokens';
import { IRowNote, RowNotes } from '../../widgets/rankoutput/notes/rownotes';
import type { IDistUndo } from './tokens';

export interface IUndoNoteOptions extends INoteContext {
  trans: TranslationBundle;
  undo: IDistUndo;
  /** Undo a cell of a notebook. */
  undoCell(group: string, cell: string): void;
  /** Do an undone cell of a notebook again. */
  redoCell(group: string, cell: string): void;
}

export class UndoNote implements IHeaderNote {
  constructor(private readonly _options: IUndoNoteOptions) {
    _options.undo.changed.connect(this._draw, this);
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
    this._draw();
  }

  dispose(): void {
    this._options.undo.changed.disconnect(this._draw, this);
  }

  private _draw(): void {
    const notes = this._bundle ? this._notesOn(this._bundle) : [];
    this._isSaid = notes.length > 0;
    this._notes.update(notes);
    const isUndone = notes.some(({ kind }) => kind === 'undone');
    if (isUndone !== this._isUndone) {
      this._isUndone = isUndone;
      this._options.redraw(); // the header is shown of a cell that has news
    }
  }

  /** When it was undone, or a button to undo it. */
  private _notesOn({ group, execution_id: id }: IRanksBundle): IRowNote[] {
    const { trans, undo, undoCell, redoCell } = this._options;
    const note = undo.noteOn(group.id, id);
    if (note?.undoneAt) {
      const text = trans.__('Undone at %1', clockTime(note.undoneAt, Date.now() / 1000));
      const gone = undo.undone(group.id).find(({ execution_id: other }) => other === id)?.cell_id;
      const title = trans.__('Give variables what this cell had left in them; no code runs');
      return [
        { kind: 'undone', text, title: trans.__('Variables are as they were before this cell') },
        ...(gone ? [{ kind: 'redo', text: trans.__('Redo'), title, act: () => redoCell(group.id, gone) }] : [])
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

  private _bundle: IRanksBundle | null = null;
  private _isSaid = false;
  private _isUndone = false;
  private readonly _notes = new RowNotes('jpd-UndoNote');
}
