/** A panel of a group in the main area; while it is hidden, its model sends no requests. */
import { LabIcon, ReactWidget } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';

export interface IPanelModel extends IDisposable {
  /** The id of the group. */
  readonly group: string;
  setVisible(isVisible: boolean): void;
}

export abstract class GroupPanel<T extends IPanelModel> extends ReactWidget {
  /** The panel's id consists of `kind` and the group's id. */
  constructor(
    protected readonly model: T,
    kind: string,
    label: string,
    icon: LabIcon
  ) {
    super();
    this.id = `jupyter-dist-${kind}-${model.group}`;
    this.title.label = label;
    this.title.icon = icon;
    this.title.closable = true;
    this.node.tabIndex = -1;
    document.addEventListener('visibilitychange', this._updateVisible);
  }

  /** The id of the group. */
  get group(): string {
    return this.model.group;
  }

  dispose(): void {
    if (!this.isDisposed) {
      document.removeEventListener('visibilitychange', this._updateVisible);
      this.model.dispose();
      super.dispose();
    }
  }

  /** Focus the part that takes keys; false if React has not drawn it yet. */
  protected abstract takeFocus(): boolean;

  /** Focus the panel as soon as it is drawn: that is a moment after it is added. */
  protected focus(): void {
    this._isFocusWanted = !this.takeFocus();
  }

  /** The view is drawn. */
  protected readonly onReady = (): void => (this._isFocusWanted ? this.focus() : undefined);

  protected onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.focus();
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._updateVisible();
  }

  protected onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._updateVisible();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._updateVisible();
  }

  protected onAfterDetach(message: Message): void {
    super.onAfterDetach(message);
    this._updateVisible();
  }

  private readonly _updateVisible = (): void => {
    this.model.setVisible(this.isVisible && document.visibilityState === 'visible');
  };

  private _isFocusWanted = false;
}
