/** The dialog with the saves that exist, each with buttons that restore or delete it. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { clockTime, formatBytes } from '../../../model/format/quantities';
import type { IGroup, ISave, ISaves } from '../../../services/protocol';
import { inWords } from '../../../services/words';
import { ageWord } from '../model/agewords';

export interface ISavesDialogOptions {
  readonly trans: TranslationBundle;
  readonly group: IGroup;
  readonly found: ISaves;
  /** The time on the server. */
  readonly now: number;
}

/** What the user chose. */
export interface ISaveChoice {
  readonly action: 'restore' | 'delete';
  readonly save: ISave;
}

export class SavesDialog extends Dialog<ISaveChoice | null> {
  constructor(options: ISavesDialogOptions) {
    const { trans, group } = options;
    const body = new SavesBody(options, () => this.resolve());
    super({
      title: trans.__('Saves for %1', group.name),
      body,
      buttons: [Dialog.cancelButton({ label: trans.__('Close') })]
    });
    this.addClass('jpd-StateDialog');
    this._list = body;
  }

  /** What was chosen; null if it was closed. */
  get choice(): ISaveChoice | null {
    return this._list.getValue();
  }

  /** Enter presses the button that has the focus. */
  protected _evtKeydown(event: KeyboardEvent): void {
    const isInList = document.activeElement?.closest('.jpd-Saves') !== null;
    if (event.key !== 'Enter' || !isInList) {
      super._evtKeydown(event);
    }
  }

  private readonly _list: SavesBody;
}

class SavesBody extends ReactWidget implements Dialog.IBodyWidget<ISaveChoice | null> {
  constructor(
    private readonly _options: ISavesDialogOptions,
    private readonly _close: () => void
  ) {
    super();
    this.addClass('jpd-StateDialog-body');
  }

  getValue(): ISaveChoice | null {
    return this._choice;
  }

  protected render(): React.ReactElement {
    const { trans, found } = this._options;
    return (
      <>
        {found.saves.length === 0 ? (
          <p>{trans.__('There is no save in %1 yet.', found.folder)}</p>
        ) : (
          <ul className="jpd-Saves" aria-label={trans.__('Saves')}>
            {found.saves.map(save => (
              <li key={save.id}>{this._row(save)}</li>
            ))}
          </ul>
        )}
        {found.damaged.map(sentence => (
          <p key={sentence} className="jpd-StateDialog-warning">
            {sentence}
          </p>
        ))}
        {found.saves.length > 0 && <p className="jpd-StateDialog-quiet">{trans.__('Folder: %1', found.folder)}</p>}
      </>
    );
  }

  private _row(save: ISave): React.ReactElement {
    const { trans, now } = this._options;
    const age = ageWord(trans, now - save.saved_at);
    const facts = [
      `${clockTime(save.saved_at, now)} (${age})`,
      trans._n('%2, %1 rank', '%2, %1 ranks', save.world_size, save.group),
      trans._n('%1 name', '%1 names', save.num_names),
      formatBytes(save.total_bytes),
      save.skipped.length > 0 ? trans._n('lacks %1 name', 'lacks %1 names', save.skipped.length) : ''
    ].filter(Boolean);
    const lacks = save.skipped.map(({ name, reason }) => `${name}: ${reason}`).join('\n');
    const choose = (action: ISaveChoice['action']) => () => {
      this._choice = { action, save };
      this._close();
    };
    return (
      <>
        <div className="jpd-Saves-text">
          <strong>{save.name}</strong>
          <span title={lacks}>{facts.join(' \u00b7 ')}</span>
          {save.problem && <em>{inWords(trans, save.problem, save.problem_words)}</em>}
        </div>
        <button
          type="button"
          className="jp-mod-styled jp-mod-accept"
          disabled={Boolean(save.problem)}
          aria-label={trans.__('Restore %1', save.name)}
          onClick={choose('restore')}
        >
          {trans.__('Restore\u2026')}
        </button>
        <button
          type="button"
          className="jp-mod-styled jp-mod-reject"
          aria-label={trans.__('Delete %1', save.name)}
          onClick={choose('delete')}
        >
          {trans.__('Delete\u2026')}
        </button>
      </>
    );
  }

  private _choice: ISaveChoice | null = null;
}
