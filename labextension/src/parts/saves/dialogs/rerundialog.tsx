/** The dialog after a restore: the cells that made what the save lacks, to run them again. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { ICellToRerun } from '../model/saves';
import { rankSetLabel } from '../../../widgets/rankoutput/items/itemrow';

export interface IRerunDialogOptions {
  readonly trans: TranslationBundle;
  /** The name of the save. */
  readonly save: string;
  readonly cells: readonly ICellToRerun[];
}

/** Resolves with the cells that are checked, in order. */
export class RerunDialog extends Dialog<readonly ICellToRerun[]> {
  constructor(options: IRerunDialogOptions) {
    const { trans, save } = options;
    super({
      title: trans.__('%1 is restored', save),
      body: new RerunBody(options),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Not Now') }),
        Dialog.okButton({ label: trans.__('Run the Checked Cells') })
      ]
    });
    this.addClass('jpd-StateDialog');
  }
}

class RerunBody extends ReactWidget implements Dialog.IBodyWidget<readonly ICellToRerun[]> {
  constructor(private readonly _options: IRerunDialogOptions) {
    super();
    this.addClass('jpd-StateDialog-body');
    this._checked = new Set(_options.cells);
  }

  getValue(): readonly ICellToRerun[] {
    return this._options.cells.filter(cell => this._checked.has(cell));
  }

  protected render(): React.ReactElement {
    const { trans, cells } = this._options;
    return (
      <>
        <p>{trans.__('These cells made what could not be saved. Run them again, in this order?')}</p>
        <ol className="jpd-Rerun" aria-label={trans.__('Cells to run again')}>
          {cells.map(cell => (
            <li key={`${cell.executionCount} ${cell.code}`}>
              <label>
                <input
                  type="checkbox"
                  defaultChecked
                  onChange={event => (event.target.checked ? this._checked.add(cell) : this._checked.delete(cell))}
                />
                {trans.__(
                  '[%1] on %2: %3',
                  cell.executionCount,
                  rankSetLabel(trans, cell.ranks),
                  cell.names.join(', ')
                )}
              </label>
              <pre>{cell.code}</pre>
            </li>
          ))}
        </ol>
      </>
    );
  }

  private readonly _checked: Set<ICellToRerun>;
}
