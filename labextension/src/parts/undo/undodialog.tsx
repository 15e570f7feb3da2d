/** The dialog that undoes cells: which ones, and what stays as it is. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { formatBytes } from '../../model/format/quantities';
import type { IGroup, IUndoableCell } from '../../services/protocol';
import { rankSetLabel } from '../../widgets/rankoutput/items/itemrow';
import { cellName } from './cellname';

export interface IUndoDialogOptions {
  readonly trans: TranslationBundle;
  readonly group: IGroup;
  /** The cells, newest first. */
  readonly cells: readonly IUndoableCell[];
}

/** Accepted: the cells are to be undone. */
export class UndoDialog extends Dialog<void> {
  constructor(options: IUndoDialogOptions) {
    const { trans, cells } = options;
    super({
      title:
        cells.length === 1
          ? trans.__('Undo %1?', cellName(trans, cells[0]))
          : trans._n('Undo %1 cell?', 'Undo %1 cells?', cells.length),
      body: new UndoBody(options),
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Undo') })]
    });
    this.addClass('jpd-StateDialog');
  }
}

class UndoBody extends ReactWidget {
  constructor(private readonly _options: IUndoDialogOptions) {
    super();
    this.addClass('jpd-StateDialog-body');
  }

  protected render(): React.ReactElement {
    const { trans, group, cells } = this._options;
    const left = [...new Set(cells.flatMap(({ cost }) => cost.not_kept))];
    return (
      <>
        <p>
          {trans.__(
            'All variables on the ranks of %1 that ran it become what they were before, in the same objects.',
            group.name
          )}
        </p>
        <ol className="jpd-Undo" aria-label={trans.__('Cells to undo, the last one first')}>
          {cells.map(cell => (
            <li key={cell.execution_id}>
              <span>{trans.__('%1 on %2', cellName(trans, cell), rankSetLabel(trans, cell.ranks))}</span>
              <code>{cell.line}</code>
              <span className="jpd-StateDialog-quiet">{formatBytes(cell.cost.bytes)}</span>
            </li>
          ))}
        </ol>
        <p className="jpd-StateDialog-warning">
          {trans.__('Not undone: files, prints, the network and other processes.')}
        </p>
        {left.length > 0 && (
          <ul className="jpd-Undo-left" aria-label={trans.__('Not undone')}>
            {left.map(sentence => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        )}
      </>
    );
  }
}
