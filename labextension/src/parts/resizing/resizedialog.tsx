/** The dialogs that resize a group: the number of ranks, and what happens to what ranks do not have alike. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { MAX_RANKS } from '../../model/format/ranks';
import type { IGroup } from '../../services/protocol';

/** Resolves with the number of ranks. */
export class ResizeDialog extends Dialog<number> {
  constructor(trans: TranslationBundle, group: IGroup) {
    super({
      title: trans.__('Resize %1', group.name),
      body: new ResizeBody(trans, group),
      focusNodeSelector: 'input',
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Resize') })]
    });
    this.addClass('jpd-StateDialog');
  }
}

class ResizeBody extends ReactWidget implements Dialog.IBodyWidget<number> {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _group: IGroup
  ) {
    super();
    this.addClass('jpd-StateDialog-body');
    this._value = _group.world_size;
  }

  getValue(): number {
    return this._value;
  }

  protected render(): React.ReactElement {
    const { _trans: trans, _group: group } = this;
    const numNodes = group.nodes?.length ?? 0;
    return (
      <>
        <label className="jpd-StateDialog-field">
          {trans.__('Ranks')}
          <input
            className="jp-mod-styled"
            type="number"
            min={1}
            max={MAX_RANKS}
            defaultValue={this._value}
            onChange={event => {
              this._value = event.target.valueAsNumber;
            }}
          />
        </label>
        <p>
          {trans.__(
            'Ranks that stay keep their processes and all variables. New ranks get copies of what all ranks have alike; what they do not have alike is asked about.'
          )}
        </p>
        {numNodes > 1 && (
          <p>{trans.__('Ranks leave the last of the %1 machines first, and new ranks are added there.', numNodes)}</p>
        )}
      </>
    );
  }

  private _value: number;
}

/** What happens to names that ranks do not have alike; null: the group keeps its size. */
export type DifferAnswer = 'keep' | 'copy' | null;

/** Ask about the names that ranks do not have alike. */
export class DifferDialog extends Dialog<void> {
  constructor(trans: TranslationBundle, group: IGroup, differ: readonly string[], grows: boolean) {
    const keep = Dialog.okButton({
      label: grows ? trans.__('New Ranks Lack Them') : trans.__('Resize All the Same'),
      actions: ['keep']
    });
    const copy = Dialog.createButton({ label: trans.__('Copy from Rank 0'), actions: ['copy'] });
    super({
      title: trans.__('Ranks of %1 do not have everything alike', group.name),
      body: new DifferBody(trans, differ, grows),
      buttons: [Dialog.cancelButton({ label: trans.__('Keep the Size') }), ...(grows ? [copy] : []), keep],
      defaultButton: 0
    });
    this.addClass('jpd-StateDialog');
  }
}

/** What was answered. */
export function differAnswer({ accept, actions }: Dialog.IButton): DifferAnswer {
  return accept ? (actions.includes('copy') ? 'copy' : 'keep') : null;
}

class DifferBody extends ReactWidget {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _differ: readonly string[],
    private readonly _grows: boolean
  ) {
    super();
    this.addClass('jpd-StateDialog-body');
  }

  protected render(): React.ReactElement {
    const { _trans: trans, _differ: differ } = this;
    return (
      <>
        <p>
          {this._grows
            ? trans.__('New ranks cannot have copies of these names, because they differ or could not be compared:')
            : trans.__('Ranks that leave have other values of these names than the rest, which would be lost:')}
        </p>
        <ul className="jpd-Differ" aria-label={trans.__('Names')}>
          {differ.map(name => (
            <li key={name}>
              <code>{name}</code>
            </li>
          ))}
        </ul>
      </>
    );
  }
}
