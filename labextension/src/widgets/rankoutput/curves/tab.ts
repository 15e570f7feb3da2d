/** Whether an output has curves, and the tab that shows them. Charts are loaded when the tab is first opened. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CurveReader } from '../../../model/curves/reader';
import { loaded } from '../../../services/errors';
import type { IShownItem } from '../items/shown';
import type { CurvesView } from './curvesview';

/** Time for reading lines per frame. */
const READ_MS = 8;

export interface ICurvesTabOptions {
  trans: TranslationBundle;
  /** Opens the curves in a tab; null where they cannot be. */
  curvesOpener(): (() => void) | null;
  /** Draw again: there is more to read. */
  redraw(): void;
}

export class CurvesTab {
  constructor(private readonly _options: ICurvesTabOptions) {}

  /** Whether there are curves. */
  get exists(): boolean {
    return this._exists;
  }

  /** Read what is new. `source` names where the items come from: another one is read from its start. */
  read(items: readonly IShownItem[], source: string): void {
    if (source !== this._source) {
      this._source = source;
      this._reader = new CurveReader();
    }
    if (items !== this._items) {
      this._items = items;
      this._isRead = false;
    }
    if (!this._isRead) {
      const { version } = this._reader;
      this._isRead = this._reader.read(items, performance.now() + READ_MS);
      this._exists = this._exists && this._reader.version === version ? true : this._reader.curves.length > 0;
    }
    if (!this._isRead) {
      this._options.redraw();
    }
  }

  /** The panel, created when it is first shown. */
  get pane(): Widget {
    if (!this._pane) {
      this._pane = new Widget();
      this._pane.addClass('jpd-Curves');
      void this._load(this._pane);
    }
    return this._pane;
  }

  /** Draw what was read. */
  update(): void {
    this._view?.update(this._reader);
  }

  dispose(): void {
    this._isDisposed = true;
    this._view?.dispose();
    this._pane?.dispose();
  }

  private async _load(pane: Widget): Promise<void> {
    try {
      const { CurvesView } = await loaded(import(/* webpackChunkName: "curves" */ './curvesview'));
      if (!this._isDisposed) {
        this._view = new CurvesView(pane.node, this._options.trans, () => this._options.curvesOpener());
        this.update();
      }
    } catch (reason) {
      pane.node.textContent = (reason as Error).message;
    }
  }

  private _exists = false;
  private _isDisposed = false;
  private _isRead = false;
  private _items: readonly IShownItem[] | null = null;
  private _pane: Widget | null = null;
  private _reader = new CurveReader();
  private _source = '';
  private _view: CurvesView | null = null;
}
