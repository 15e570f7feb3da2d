/** A form for a new group, from when it is opened until it is closed: its elements are gone while the sidebar is hidden. */
import { PromiseDelegate } from '@lumino/coreutils';
import { ChangingModel } from '../../../model/changing';
import type { FilledForm, IStartForm } from '../../../model/groups/startvalues';
import type { IErrorBody, IGroup } from '../../../services/protocol';
import { mayTakeFocus } from '../../base/focus';

interface IOpenFormOptions {
  /** The notebook it was opened for; null: the current one. */
  readonly notebook: string | null;
  /** The values that the form is filled in with. */
  readonly wanted: FilledForm | null;
  /** What had the focus when the user asked for it; null: the user did not ask for it. */
  readonly from: Element | null;
}

export class OpenForm extends ChangingModel {
  constructor(private readonly _options: IOpenFormOptions) {
    super();
  }

  /** What was typed; null until it was shown. */
  fields: IStartForm | null = null;

  /** What the group begins with, by the ids of the beginnings of which something was chosen. */
  readonly chosen = new Map<string, unknown>();

  get notebook(): string | null {
    return this._options.notebook;
  }

  get wanted(): FilledForm | null {
    return this._options.wanted;
  }

  /** Why the group could not be started. */
  get error(): IErrorBody | null {
    return this._error;
  }

  /** Whether the server was asked and has not answered. */
  get isPending(): boolean {
    return this._isPending;
  }

  /** Resolves with the group that was started; null: none was. */
  get answered(): Promise<IGroup | null> {
    return this._answered.promise;
  }

  begin(): void {
    this._set(true, null);
  }

  fail(error: IErrorBody): void {
    this._set(false, error);
  }

  answer(started: IGroup | null): void {
    this._answered.resolve(started);
    this.dispose();
  }

  /** Whether it takes the focus: only when it is shown for the first time, and if the user has done nothing else meanwhile. */
  takesFocus(node: HTMLElement): boolean {
    const isFirst = !this._wasShown;
    this._wasShown = true;
    return isFirst && (mayTakeFocus(node) || document.activeElement === this._options.from);
  }

  private _set(isPending: boolean, error: IErrorBody | null): void {
    this._isPending = isPending;
    this._error = error;
    this.emitChanged();
  }

  private readonly _answered = new PromiseDelegate<IGroup | null>();
  private _error: IErrorBody | null = null;
  private _isPending = false;
  private _wasShown = false;
}
