/** The rank output panel of a group: tabs of ranks with their states, and the log of the current rank. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import type { Message } from '@lumino/messaging';
import { PanelLayout, TabBar, Title, Widget } from '@lumino/widgets';
import type { ILogLimits } from './model/log';
import type { IGroup, IRank } from '../../services/protocol';
import type { IDistExecutions, IDistGroups, IDistService } from '../../tokens';
import { formatRanks } from '../../model/format/ranks';
import { hueOf } from '../../widgets/states/rankcolor';
import { MANY_RANKS, RankFinder } from '../../widgets/states/rankfinder';
import { countStates } from '../../widgets/states/statebar';
import { stateWord } from '../../widgets/states/statewords';
import { RankLog } from './ranklog';

export interface ILogPanelOptions {
  readonly service: IDistService;
  readonly executions: Pick<IDistExecutions, 'isOwn'>;
  readonly groups: IDistGroups;
  readonly group: IGroup;
  readonly limits: ILogLimits;
  readonly rendermime: IRenderMimeRegistry;
  readonly trans: TranslationBundle;
}

export class LogPanel extends Widget {
  constructor(options: ILogPanelOptions) {
    super();
    this.addClass('jpd-LogPanel');
    this._options = options;
    this.group = options.group.id;
    this._known = options.group.ranks;
    this._tabs = new RankTabs();
    this._tabs.node.setAttribute('aria-label', options.trans.__('Ranks of %1', options.group.name));
    this._box = new PanelLayout();
    this._box.addWidget(this._tabs);
    this._finder = new RankFinder({ trans: options.trans, onSelect: rank => (this.rank = rank) });
    const finder = new Widget();
    finder.addClass('jpd-LogPanel-finder');
    finder.node.append(this._finder.node);
    this._box.addWidget(finder);
    this.layout = this._box;
    this._tabs.currentChanged.connect(this._onTab, this);
    options.groups.changed.connect(this._update, this);
    this._update();
  }

  /** The id of the group. */
  readonly group: string;

  /** Emitted when another rank is selected. */
  get currentChanged(): ISignal<this, void> {
    return this._currentChanged;
  }

  /** The visible log. */
  get current(): RankLog | null {
    return this._current;
  }

  get rank(): number {
    return this._current?.rank ?? -1;
  }
  set rank(rank: number) {
    this._wanted = rank;
    this._update();
    this._tabs.currentIndex = this._ranks.indexOf(rank);
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._finder.dispose();
      Signal.clearData(this);
      super.dispose();
    }
  }

  protected onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this._current?.view.node.focus();
  }

  private _update(): void {
    const { groups, trans } = this._options;
    this.node.dataset.connected = String(groups.connected);
    const group = groups.groups.find(one => one.id === this.group);
    // Of a group that is gone, the output stays readable here.
    this._known = group?.ranks.length ? group.ranks : this._known.map(rank => ({ ...rank, state: 'dead' as const }));
    this._showTabs(this._known.length <= MANY_RANKS ? this._known.map(({ rank }) => rank) : this._chosen());
    for (const [index, rank] of this._ranks.entries()) {
      const title = this._tabs.titles[index];
      const { state } = this._known[rank];
      title.dataset = { ...title.dataset, state };
      title.caption = trans.__('Rank %1: %2', rank, stateWord(trans, state));
    }
    this._finder.update(formatRanks(this._known.map(({ rank }) => rank)), countStates(this._known));
  }

  /** The tabs of a group of many ranks: the ranks that were opened last, and the ranks that need a look. */
  private _chosen(): number[] {
    const bad = this._known.filter(({ state }) => state === 'dead' || state === 'unresponsive').map(({ rank }) => rank);
    const some = bad.length < this._known.length ? bad.slice(0, MAX_BAD) : [];
    const chosen = new Set([Math.max(0, this._wanted), ...this._recent, ...some]);
    return [...chosen].filter(rank => rank < this._known.length).sort((a, b) => a - b);
  }

  private _showTabs(ranks: number[]): void {
    if (ranks.join() === this._ranks.join()) {
      return;
    }
    const { rank } = this;
    this._ranks = []; // nothing is selected while tabs come and go
    this._tabs.clearTabs();
    ranks.forEach(number => this._addTab(number));
    this._ranks = ranks;
    this._tabs.currentIndex = ranks.indexOf(rank);
  }

  private _addTab(rank: number): void {
    this._tabs.addTab(
      new Title<Widget>({ owner: this, label: String(rank), dataset: { rank: String(rank), hue: hueOf(rank) } })
    );
  }

  private _onTab(): void {
    const rank = this._ranks[this._tabs.currentIndex] ?? -1;
    if (rank < 0 || this._current?.rank === rank) {
      return;
    }
    let log = this._logs.get(rank);
    if (!log) {
      log = new RankLog({ ...this._options, group: this.group, rank });
      this._logs.set(rank, log);
      this._box.addWidget(log);
    }
    const previous = this._current;
    this._current = log;
    previous?.hide();
    log.show();
    this._forget(rank);
    this._revealTab();
    this._currentChanged.emit();
  }

  /** With 64 tabs, the current one may be scrolled out of view. */
  private _revealTab(): void {
    requestAnimationFrame(() => {
      const tab = this._tabs.contentNode.children[this._tabs.currentIndex];
      tab?.scrollIntoView({ block: 'nearest' });
    });
  }

  /** Keep only the last few logs loaded: 64 pages of a megabyte would be too much. */
  private _forget(rank: number): void {
    this._recent = [rank, ...this._recent.filter(other => other !== rank)];
    for (const old of this._recent.splice(MAX_LOADED)) {
      this._logs.get(old)?.dispose();
      this._logs.delete(old);
    }
  }

  private readonly _finder: RankFinder;
  private _known: readonly IRank[];
  private readonly _options: ILogPanelOptions;
  /** The ranks with a tab, in order. */
  private _ranks: number[] = [];
  private _wanted = -1;
  private readonly _tabs: RankTabs;
  private readonly _box: PanelLayout;
  private readonly _logs = new Map<number, RankLog>();
  private readonly _currentChanged = new Signal<this, void>(this);
  private _recent: number[] = [];
  private _current: RankLog | null = null;
}

const MAX_LOADED = 4;

/** At most this many ranks that need a look have a tab. */
const MAX_BAD = 12;

/** The ranks as tabs, each with a light and a number, in as many rows as needed. */
class RankTabs extends TabBar<Widget> {
  constructor() {
    super({ allowDeselect: false, tabsMovable: false, insertBehavior: 'none' });
    this.addClass('jpd-RankTabs');
  }
}
