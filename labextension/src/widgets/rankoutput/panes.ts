/** What is below the tabs: a pane for the folded output, one for each rank, and one for each tab of a part. Created when they are first shown. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { PanelLayout, Widget } from '@lumino/widgets';
import { includesRank } from '../../model/format/ranks';
import type { ILiveItems, ILiveOutputs } from '../../model/outputs/liveoutputs';
import { FINAL_STATES } from '../../services/protocol';
import type { IDistOutputTabs, IOutputTab } from '../../tokens';
import type { NumbersSwitch } from './header/numbersswitch';
import type { IMoreTab, TabId } from './header/tabbar';
import { ItemList } from './items/itemlist';
import type { IShown, IShownItem } from './items/shown';

export interface IPanesOptions {
  trans: TranslationBundle;
  /** Prefix of the DOM ids, unique on the page. */
  prefix: string;
  /** Where panes are put. */
  content: PanelLayout;
  numbers: NumbersSwitch;
  /** The live outputs of the notebook. */
  live: ILiveOutputs;
  openLog(group: string, rank: number): void;
  /** The tabs of parts. */
  outputTabs: IDistOutputTabs;
  redraw(): void;
}

export class Panes {
  constructor(private readonly _options: IPanesOptions) {
    this._live = _options.live.open(_options.redraw);
  }

  /** Have the tabs of parts read the output; returns the tabs with something to show. */
  read({ group, executionId: execution, isLive, items }: IShown): IMoreTab[] {
    const { outputTabs, redraw } = this._options;
    return outputTabs.items.flatMap(({ id, create }) => {
      const tab = this._more.get(id) ?? create(redraw);
      this._more.set(id, tab);
      tab.read({ group: group.id, execution, isLive, items });
      return tab.exists ? [{ id, label: tab.label, caption: tab.caption }] : [];
    });
  }

  /** Show a pane, and return its items. Only the visible one is updated. */
  show(tab: TabId, shown: IShown, trusted: boolean): readonly IShownItem[] {
    const more = typeof tab === 'string' ? this._more.get(tab) : undefined;
    const pane = this._panes.get(tab) ?? this._add(tab, more?.pane ?? this._newList(shown, trusted));
    for (const [id, other] of this._panes) {
      other.setHidden(id !== tab);
    }
    if (more) {
      more.update();
      return [];
    }
    const items =
      typeof tab === 'number'
        ? shown.items.filter(item => includesRank(item.ranks, tab))
        : this._folded(shown, trusted);
    (pane as ItemList).setItems(items, shown.ranks, !FINAL_STATES.has(shown.state));
    return items;
  }

  /** Trust has changed: what was rendered is rendered again. */
  clear(): void {
    this._disposeMore();
    this._panes.forEach(pane => pane.dispose());
    this._panes.clear();
  }

  dispose(): void {
    this._disposeMore();
    this._live.dispose();
  }

  private _disposeMore(): void {
    this._more.forEach(tab => tab.dispose());
    this._more.clear();
  }

  private _folded(shown: IShown, trusted: boolean): readonly IShownItem[] {
    return this._options.numbers.apply(trusted ? this._live.apply(shown) : shown.items);
  }

  private _newList(shown: IShown, trusted: boolean): ItemList {
    const { live, trans, openLog, numbers } = this._options;
    return new ItemList({
      rendermime: live.registryOf(shown.group.id),
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

  private readonly _more = new Map<string, IOutputTab>();
  private readonly _panes = new Map<TabId, Widget>();
  private readonly _live: ILiveItems;
}
