/** What is below the tabs: a pane for the folded output, one for each rank, and one for curves. Created when they are first shown. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { PanelLayout, Widget } from '@lumino/widgets';
import { SharedViews } from '../../model/comms/sharedviews';
import type { WidgetSpaces } from '../../model/comms/spaces';
import { includesRank } from '../../model/format/ranks';
import { FINAL_STATES } from '../../services/protocol';
import { CurvesTab } from './curves/tab';
import type { NumbersSwitch } from './header/numbersswitch';
import type { TabId } from './header/tabbar';
import { ItemList } from './items/itemlist';
import type { IShown, IShownItem } from './items/shown';

export interface IPanesOptions {
  trans: TranslationBundle;
  /** Prefix of the DOM ids, unique on the page. */
  prefix: string;
  /** Where panes are put. */
  content: PanelLayout;
  numbers: NumbersSwitch;
  /** The live widgets of groups. */
  widgets: Pick<WidgetSpaces, 'registryOf' | 'findShared' | 'sharedChanged'>;
  openLog(group: string, rank: number): void;
  /** Opens the curves of an execution in a tab; null if its group is gone. */
  curvesOpener(group: string, execution: string): (() => void) | null;
  redraw(): void;
}

export class Panes {
  constructor(private readonly _options: IPanesOptions) {
    this._curves = this._newCurves();
    this._shared = new SharedViews(_options.widgets, _options.redraw);
  }

  /** Read the curves; whether there are any. */
  readCurves(shown: IShown): boolean {
    this._place = [shown.group.id, shown.executionId];
    this._curves.read(shown.items, `${shown.executionId} ${shown.isLive}`);
    return this._curves.exists;
  }

  /** Show a pane, and return its items. Only the visible one is updated. */
  show(tab: TabId, shown: IShown, trusted: boolean): readonly IShownItem[] {
    let pane = this._panes.get(tab);
    if (!pane) {
      pane = this._add(tab, tab === 'curves' ? this._curves.pane : this._newList(shown, trusted));
    }
    for (const [id, other] of this._panes) {
      other.setHidden(id !== tab);
    }
    if (tab === 'curves') {
      this._curves.update();
      return [];
    }
    const items =
      tab === 'folded' ? this._folded(shown, trusted) : shown.items.filter(item => includesRank(item.ranks, tab));
    (pane as ItemList).setItems(items, shown.ranks, !FINAL_STATES.has(shown.state));
    return items;
  }

  /** Trust has changed: what was rendered is rendered again. */
  clear(): void {
    this._curves.dispose();
    this._panes.forEach(pane => pane.dispose());
    this._panes.clear();
    this._curves = this._newCurves();
  }

  dispose(): void {
    this._curves.dispose();
    this._shared.dispose();
  }

  private _newCurves(): CurvesTab {
    const { trans, redraw } = this._options;
    return new CurvesTab({ trans, redraw, curvesOpener: () => this._options.curvesOpener(...this._place) });
  }

  private _folded(shown: IShown, trusted: boolean): readonly IShownItem[] {
    return this._options.numbers.apply(trusted ? this._shared.apply(shown) : shown.items);
  }

  private _newList(shown: IShown, trusted: boolean): ItemList {
    const { widgets, trans, openLog, numbers } = this._options;
    return new ItemList({
      rendermime: widgets.registryOf(shown.group.id),
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
  /** The group and the execution whose output is shown. */
  private _place: [string, string] = ['', ''];
  private readonly _panes = new Map<TabId, Widget>();
  private readonly _shared: SharedViews;
}
