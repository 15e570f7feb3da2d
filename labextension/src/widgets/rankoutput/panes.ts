/** What is below the tabs: a pane for the folded output, one for each rank, and one for curves. Created when they are first shown. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { PanelLayout, Widget } from '@lumino/widgets';
import { includesRank } from '../../model/format/ranks';
import { FINAL_STATES } from '../../services/protocol';
import { CurvesTab } from './curves/tab';
import type { NumbersSwitch } from './header/numbersswitch';
import type { TabId } from './header/tabbar';
import { ItemList } from './itemlist';
import type { IShown } from './shown';

export interface IPanesOptions {
  trans: TranslationBundle;
  /** Prefix of the DOM ids, unique on the page. */
  prefix: string;
  /** Where panes are put. */
  content: PanelLayout;
  numbers: NumbersSwitch;
  registryOf(group: string): IRenderMimeRegistry;
  openLog(group: string, rank: number): void;
  redraw(): void;
}

export class Panes {
  constructor(private readonly _options: IPanesOptions) {
    this._curves = new CurvesTab(_options);
  }

  /** Read the curves; whether there are any. */
  readCurves(shown: IShown): boolean {
    this._curves.read(shown.items, `${shown.executionId} ${shown.isLive}`);
    return this._curves.exists;
  }

  /** Show a pane. Only the visible one is updated. */
  show(tab: TabId, shown: IShown, trusted: boolean): void {
    let pane = this._panes.get(tab);
    if (!pane) {
      pane = this._add(tab, tab === 'curves' ? this._curves.pane : this._newList(shown, trusted));
    }
    for (const [id, other] of this._panes) {
      other.setHidden(id !== tab);
    }
    if (tab === 'curves') {
      this._curves.update();
      return;
    }
    const items =
      tab === 'folded' ? this._options.numbers.apply(shown.items) : shown.items.filter(item => includesRank(item.ranks, tab));
    (pane as ItemList).setItems(items, shown.ranks, !FINAL_STATES.has(shown.state));
  }

  /** Trust has changed: what was rendered is rendered again. */
  clear(): void {
    this._curves.dispose();
    this._panes.forEach(pane => pane.dispose());
    this._panes.clear();
    this._curves = new CurvesTab(this._options);
  }

  dispose(): void {
    this._curves.dispose();
  }

  private _newList(shown: IShown, trusted: boolean): ItemList {
    const { registryOf, trans, openLog, numbers } = this._options;
    return new ItemList({
      rendermime: registryOf(shown.group.id),
      trans,
      trusted,
      openLog: rank => openLog(shown.group.id, rank),
      toggleExact: key => numbers.toggle(key)
    });
  }

  private _add(tab: TabId, pane: Widget): Widget {
    const { prefix, content } = this._options;
    pane.id = `${prefix}-panel-${tab}`;
    pane.toggleClass('jpd-mod-oneRank', typeof tab === 'number');
    pane.node.setAttribute('role', 'tabpanel');
    pane.node.setAttribute('aria-labelledby', `${prefix}-tab-${tab}`);
    this._panes.set(tab, pane);
    content.addWidget(pane);
    return pane;
  }

  private _curves: CurvesTab;
  private readonly _panes = new Map<TabId, Widget>();
}
