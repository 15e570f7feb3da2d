/** Whether an output has curves, and the tab that shows them. Charts are loaded when the tab is first opened. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { loadedAtLast } from '../../services/errors';
import type { ISavedItem } from '../../services/protocol';
import type { IDistOutputTabs, IOutputTab, IShownOutput } from '../../tokens';
import type { CurvesView } from './curvesview';
import { CurveReader } from './model/reader';

/** Time for reading lines per frame. */
const READ_MS = 8;

/** Opens the curves of an execution in a panel; null where they cannot be. */
export type CurvesOpener = (group: string, execution: string) => (() => void) | null;

/** Add the tab to outputs of ranks. */
export function addCurvesTab(tabs: IDistOutputTabs, trans: TranslationBundle, opener: CurvesOpener): void {
  tabs.add({ id: 'curves', create: redraw => new CurvesTab(trans, opener, redraw) });
}

class CurvesTab implements IOutputTab {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _opener: CurvesOpener,
    private readonly _redraw: () => void
  ) {
    this.label = _trans.__('Curves');
    this.caption = _trans.__('Curves: numbers with a name that recur in the output');
  }

  readonly label: string;
  readonly caption: string;

  get exists(): boolean {
    return this._exists;
  }

  /** Read what is new. An output of another execution, or from another place, is read from its start. */
  read({ group, execution, isLive, items }: IShownOutput): void {
    this._place = [group, execution];
    const source = `${execution} ${isLive}`;
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
      this._redraw();
    }
  }

  get pane(): Widget {
    if (!this._pane) {
      this._pane = new Widget();
      this._pane.addClass('jpd-Curves');
      void this._load(this._pane);
    }
    return this._pane;
  }

  update(): void {
    this._view?.update(this._reader);
  }

  dispose(): void {
    this._isDisposed = true;
    this._view?.dispose();
    this._pane?.dispose();
  }

  private async _load(pane: Widget): Promise<void> {
    const { CurvesView } = await loadedAtLast(
      () => import(/* webpackChunkName: "curves" */ './curvesview'),
      ({ message }) => (pane.node.textContent = message)
    );
    if (!this._isDisposed) {
      pane.node.textContent = '';
      this._view = new CurvesView(pane.node, this._trans, () => this._opener(...this._place));
      this.update();
    }
  }

  private _exists = false;
  private _isDisposed = false;
  private _isRead = false;
  private _items: readonly ISavedItem[] | null = null;
  private _pane: Widget | null = null;
  /** The group and the execution whose output is shown. */
  private _place: [string, string] = ['', ''];
  private _reader = new CurveReader();
  private _source = '';
  private _view: CurvesView | null = null;
}
