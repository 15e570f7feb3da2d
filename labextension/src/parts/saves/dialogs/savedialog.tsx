/** The dialog that saves a group: a name for the save, its size, and the names that would be missing. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { clockTime, formatBytes } from '../../../model/format/quantities';
import type { IErrorBody, IGroup, ISave, ISavePreview } from '../../../services/protocol';
import { ErrorNote } from '../../../widgets/base/errornote';
import { LackingList } from './lackinglist';

export interface ISaveDialogOptions {
  readonly trans: TranslationBundle;
  readonly group: IGroup;
  /** The name that is filled in. */
  readonly name: string;
  /** What the save would have and lack; null while ranks cannot be asked. */
  readonly preview: ISavePreview | null;
  /** Why they cannot. */
  readonly unknown: string;
  /** The saves that exist. */
  readonly saves: readonly ISave[];
  /** The time on the server. */
  readonly now: number;
  /** Why the last try failed. */
  readonly error: IErrorBody | null;
}

/** Resolves with a name. */
export class SaveDialog extends Dialog<string> {
  constructor(options: ISaveDialogOptions) {
    const { trans, group } = options;
    super({
      title: trans.__('Save %1', group.name),
      body: new SaveBody(options),
      focusNodeSelector: 'input',
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Save') })]
    });
    this.addClass('jpd-StateDialog');
  }
}

class SaveBody extends ReactWidget implements Dialog.IBodyWidget<string> {
  constructor(private readonly _options: ISaveDialogOptions) {
    super();
    this.addClass('jpd-StateDialog-body');
    this._name = _options.name;
  }

  getValue(): string {
    return this._name.trim();
  }

  protected render(): React.ReactElement {
    const { trans, preview, unknown, saves, now, error } = this._options;
    const known = saves.find(({ name }) => name === this.getValue());
    return (
      <>
        <label className="jpd-StateDialog-field">
          {trans.__('Name')}
          <input
            className="jp-mod-styled"
            defaultValue={this._name}
            maxLength={100}
            spellCheck={false}
            onChange={event => {
              this._name = event.target.value;
              this.update();
            }}
          />
        </label>
        <p className="jpd-StateDialog-warning" role="status">
          {known &&
            trans.__('Replaces the save of this name: group %1, %2.', known.group, clockTime(known.saved_at, now))}
        </p>
        {error && <ErrorNote error={error} />}
        {preview ? <Preview trans={trans} preview={preview} /> : <p>{unknown}</p>}
      </>
    );
  }

  private _name: string;
}

function Preview({ trans, preview }: { trans: TranslationBundle; preview: ISavePreview }): React.ReactElement {
  const { names, skipped, notes, total_bytes: bytes } = preview;
  return (
    <>
      <p>
        {trans._n(
          '%1 name, %2. What other saves have already is not written again.',
          '%1 names, %2. What other saves have already is not written again.',
          names.length,
          formatBytes(bytes)
        )}
      </p>
      {skipped.length === 0 && <p>{trans.__('All names can be saved.')}</p>}
      <LackingList trans={trans} label={trans.__('Cannot be saved')} names={skipped} />
      <LackingList trans={trans} label={trans.__('Saved without a part')} names={notes} />
    </>
  );
}
