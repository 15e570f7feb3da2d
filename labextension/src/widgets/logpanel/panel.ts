/** The rank output panel of a group: a tab per rank with its state, and the log of the current rank. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import type { Message } from '@lumino/messaging';
import { PanelLayout, TabBar, Title, Widget } from '@lumino/widgets';
import type { ILogLimits } from '../../model/log/log';
import type { IGroup, IRank } from '../../services/protocol';
import type { IDistExecutions, IDistGroups, IDistService } from '../../tokens';
import { stateWord } from '../statewords';
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
    this._tabs = new RankTabs();
    this._tabs.node.setAttribute('aria-label', options.trans.__('Ranks of %1', options.group.name));
    this._box = new PanelLayout();
    this._box.addWidget(this._tabs);
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
    return this._tabs.currentIndex;
  }
  set rank(rank: number) {
    this._tabs.currentIndex = rank;
  }

  dispose(): void {
    if (!this.isDisposed) {
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
    const ranks = group?.ranks ?? (this._tabs.titles.length === 0 ? this._options.group.ranks : []);
    for (const rank of ranks) {
      const title = this._tabs.titles[rank.rank] ?? this._addTab(rank);
      const state = group ? rank.state : 'dead';
      title.dataset = { ...title.dataset, state };
      title.caption = trans.__('Rank %1: %2', rank.rank, stateWord(trans, state));
    }
    if (!group) {
      // The ranks are gone, but their output stays readable here.
      this._tabs.titles.forEach(title => (title.dataset = { ...title.dataset, state: 'dead' }));
    }
  }

  private _addTab(rank: IRank): Title<Widget> {
    const title = new Title<Widget>({
      owner: this,
      label: String(rank.rank),
      dataset: { rank: String(rank.rank) }
    });
    this._tabs.addTab(title);
    return title;
  }

  private _onTab(): void {
    const rank = this._tabs.currentIndex;
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

  private readonly _options: ILogPanelOptions;
  private readonly _tabs: RankTabs;
  private readonly _box: PanelLayout;
  private readonly _logs = new Map<number, RankLog>();
  private readonly _currentChanged = new Signal<this, void>(this);
  private _recent: number[] = [];
  private _current: RankLog | null = null;
}

const MAX_LOADED = 4;

/** The ranks as tabs, each with a light and a number, in as many rows as needed. */
class RankTabs extends TabBar<Widget> {
  constructor() {
    super({ allowDeselect: false, tabsMovable: false, insertBehavior: 'none' });
    this.addClass('jpd-RankTabs');
  }
}
