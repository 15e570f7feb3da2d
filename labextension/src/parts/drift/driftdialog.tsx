/** The dialog that shows what ranks have missed, with the code; what is checked is run when the user confirms. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { IMissedStep } from './model/steps';
import { formatSeconds } from '../../model/format/quantities';
import type { IDrift } from '../../services/protocol';
import { rankSetLabel } from '../../widgets/rankoutput/items/itemrow';
import { cellName, endWord, placesOf, reasonWord, withheldWord } from './driftwords';

export interface IStepRow {
  readonly step: IMissedStep;
  readonly isChecked: boolean;
}

export interface ICatchUpOptions {
  readonly trans: TranslationBundle;
  /** The name of the group. */
  readonly group: string;
  readonly drift: IDrift;
  readonly rows: readonly IStepRow[];
}

/** Resolves with the steps that are checked, in order. */
export class CatchUpDialog extends Dialog<readonly IMissedStep[]> {
  constructor(options: ICatchUpOptions) {
    const { trans, group, rows } = options;
    const close = Dialog.cancelButton({ label: trans.__('Close') });
    const run = Dialog.okButton({ label: trans.__('Run the Checked Cells') });
    super({
      title:
        rows.length > 0 ? trans.__('Catch up ranks of %1', group) : trans.__('No rank of %1 has missed a cell', group),
      body: new CatchUpBody(options),
      buttons: rows.length > 0 ? [Dialog.cancelButton({ label: trans.__('Cancel') }), run] : [close]
    });
  }

  /** Enter confirms on the buttons alone: in the list it opens and closes what has the focus. */
  protected _evtKeydown(event: KeyboardEvent): void {
    const isInList = document.activeElement?.closest('.jpd-CatchUp') !== null;
    if (event.key !== 'Enter' || !isInList) {
      super._evtKeydown(event);
    }
  }
}

class CatchUpBody extends ReactWidget implements Dialog.IBodyWidget<readonly IMissedStep[]> {
  constructor(private readonly _options: ICatchUpOptions) {
    super();
    this.addClass('jpd-CatchUp');
    this._checked = new Set(_options.rows.filter(({ isChecked }) => isChecked).map(({ step }) => step));
  }

  getValue(): readonly IMissedStep[] {
    return this._options.rows.map(({ step }) => step).filter(step => this._checked.has(step));
  }

  protected render(): React.ReactElement {
    const { trans, rows, drift } = this._options;
    const replaced = rows.filter(({ step }) => step.reason === 'replaced');
    const others = rows.filter(({ step }) => step.reason !== 'replaced');
    const isOpen = others.some(({ isChecked }) => isChecked);
    return (
      <>
        {replaced.length > 0 && (
          <>
            <p>
              {trans.__(
                'These cells ran before the processes of these ranks began. They run in this order, and stop at the first that fails.'
              )}
            </p>
            {this._list(trans.__('Missed by ranks that were replaced'), replaced)}
          </>
        )}
        {others.length > 0 && (
          <details open={isOpen || replaced.length === 0}>
            <summary>
              {trans._n('%1 cell ran on other ranks only', '%1 cells ran on other ranks only', others.length)}
            </summary>
            {this._list(trans.__('Ran on other ranks only'), others)}
          </details>
        )}
        {drift.cells.length > 0 && (
          <details>
            <summary>
              {trans._n('%1 cell since the last restart', 'All %1 cells since the last restart', drift.cells.length)}
            </summary>
            <ul className="jpd-CatchUp-all">
              {drift.cells.map(cell => (
                <li key={cell.execution_id}>
                  <code>{cellName(cell)}</code> {placesOf(trans, cell)}
                </li>
              ))}
            </ul>
          </details>
        )}
        <p className="jpd-CatchUp-note">{notes(trans, drift)}</p>
      </>
    );
  }

  private _list(label: string, rows: readonly IStepRow[]): React.ReactElement {
    return (
      <ol aria-label={label}>
        {rows.map(({ step }) => (
          <li key={`${step.cell.execution_id} ${step.reason}`} data-reason={step.reason}>
            {this._row(step)}
          </li>
        ))}
      </ol>
    );
  }

  private _row(step: IMissedStep): React.ReactElement {
    const { trans, drift } = this._options;
    const { cell, ranks, reason, code } = step;
    const took = cell.seconds === null ? '' : trans.__('took %1', formatSeconds(cell.seconds));
    const facts = [
      reasonWord(trans, reason),
      endWord(trans, step),
      withheldWord(trans, step, drift),
      took,
      cell.notebook?.split('/').pop()
    ]
      .filter(Boolean)
      .join(' \u00b7 ');
    return (
      <>
        <label>
          <input
            type="checkbox"
            defaultChecked={this._checked.has(step)}
            onChange={event => this._check(step, event.target.checked)}
          />
          <span className="jpd-CatchUp-ranks">
            {trans.__('[%1] to %2', cell.execution_count ?? ' ', rankSetLabel(trans, ranks))}
          </span>
          <span className="jpd-CatchUp-facts">{facts}</span>
        </label>
        <pre>{code}</pre>
      </>
    );
  }

  private _check(step: IMissedStep, isChecked: boolean): void {
    if (isChecked) {
      this._checked.add(step);
    } else {
      this._checked.delete(step);
    }
  }

  private readonly _checked: Set<IMissedStep>;
}

function notes(trans: TranslationBundle, { left_out: left, forgotten }: IDrift): string {
  const more = left > 0 ? trans._n('%1 later cell is not listed.', '%1 later cells are not listed.', left) : '';
  const older = forgotten ? trans.__('Cells before the last 2000 executions are not known any more.') : '';
  return [more, older].filter(Boolean).join(' ');
}
