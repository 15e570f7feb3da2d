/** The tabs of a rank output: the folded output, tabs of parts, then one per rank. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { includesRank } from '../../../model/format/ranks';
import { hueOf } from '../../states/rankcolor';
import { MANY_RANKS } from '../../states/rankfinder';
import { stateWord } from '../../states/statewords';
import type { IShown, IShownRank } from '../items/shown';
import { standingOut } from './standingout';
import { memoryWords, rankTime, timesDiffer } from './summary';

/** Above this many ranks, a tab only has a number and a state. */
const MAX_WIDE = 8;

/** A rank, the folded output, or the id of a part's tab. */
export type TabId = number | string;

/** A tab of a part. */
export interface IMoreTab {
  id: string;
  label: string;
  caption: string;
}

/** What the tabs show. */
export interface ITabs {
  shown: IShown;
  more: readonly IMoreTab[];
  now: number;
  /** The sets of ranks that wait for input. */
  asking: readonly string[];
}

export interface ITabBarOptions {
  trans: TranslationBundle;
  /** Prefix of the DOM ids, unique on the page. */
  prefix: string;
  onSelect(tab: TabId): void;
}

export class RankTabBar {
  constructor(private _options: ITabBarOptions) {
    this.node = document.createElement('div');
    this.node.className = 'jpd-OutputTabs';
    this.node.setAttribute('role', 'tablist');
    this.node.setAttribute('aria-label', _options.trans.__('Output by rank'));
    this.node.addEventListener('click', this);
    this.node.addEventListener('keydown', this);
  }

  readonly node: HTMLElement;

  update({ shown, more, now, asking }: ITabs, selected: TabId): void {
    const { trans } = this._options;
    const perRank = withTab(shown, selected, asking);
    const tabs: TabId[] = ['folded', ...more.map(({ id }) => id), ...perRank.map(({ rank }) => rank)];
    this._setTabs(tabs);
    this.node.classList.toggle('jpd-mod-compact', perRank.length > MAX_WIDE);
    this._label('folded', trans.__('Folded'), '', shown.state);
    setAttribute(this._tabs.get('folded')!, 'title', foldedHint(trans));
    setAttribute(this._tabs.get('folded')!, 'data-asks', String(asking.length > 0));
    for (const { id, label, caption } of more) {
      this._label(id, label, '', shown.state);
      setAttribute(this._tabs.get(id)!, 'title', caption);
    }
    const hasTimes = timesDiffer(shown.perRank);
    for (const rank of perRank) {
      const word = stateWord(trans, rank.status);
      const time = rankTime(rank, shown.startedAt, now);
      this._label(rank.rank, String(rank.rank), hasTimes ? time : '', rank.status);
      const tab = this._tabs.get(rank.rank)!;
      const asks = asking.some(ranks => includesRank(ranks, rank.rank));
      const state = trans.__('Rank %1, %2 %3', rank.rank, word, time).trim();
      const label = asks ? trans.__('%1, asks for input', state) : state;
      setAttribute(tab, 'data-asks', String(asks));
      const memory = memoryWords(trans, rank);
      setAttribute(tab, 'aria-label', label);
      setAttribute(tab, 'title', memory ? trans.__('%1\nMemory: %2', label, memory) : label);
    }
    for (const [id, tab] of this._tabs) {
      setAttribute(tab, 'aria-selected', String(id === selected));
      tab.tabIndex = id === selected ? 0 : -1;
    }
  }

  handleEvent(event: Event): void {
    if (event.type === 'click') {
      const tab = (event.target as HTMLElement).closest('[role=tab]');
      const id = tab && this._idOf(tab as HTMLElement);
      if (id !== null) {
        this._options.onSelect(id);
      }
    } else {
      this._onKeyDown(event as KeyboardEvent);
    }
  }

  dispose(): void {
    this.node.removeEventListener('click', this);
    this.node.removeEventListener('keydown', this);
  }

  private _onKeyDown(event: KeyboardEvent): void {
    const ids = [...this._tabs.keys()];
    const focused = this._idOf(event.target as HTMLElement);
    const index = focused === null ? -1 : ids.indexOf(focused);
    const next: Record<string, number> = {
      ArrowLeft: (index - 1 + ids.length) % ids.length,
      ArrowRight: (index + 1) % ids.length,
      Home: 0,
      End: ids.length - 1
    };
    if (index < 0 || !(event.key in next)) {
      return;
    }
    // Keep the notebook's shortcuts from moving to another cell.
    event.preventDefault();
    event.stopPropagation();
    const id = ids[next[event.key]];
    this._options.onSelect(id);
    this._tabs.get(id)?.focus();
  }

  private _setTabs(ids: readonly TabId[]): void {
    const known = [...this._tabs.keys()];
    if (ids.length === known.length && ids.every((id, i) => id === known[i])) {
      return;
    }
    this._tabs = new Map(ids.map(id => [id, this._newTab(id)]));
    this.node.replaceChildren(...this._tabs.values());
  }

  private _newTab(id: TabId): HTMLElement {
    const tab = document.createElement('button');
    const { prefix } = this._options;
    tab.type = 'button';
    tab.className = 'jpd-OutputTabs-tab';
    tab.id = `${prefix}-tab-${id}`;
    tab.dataset.tab = String(id);
    if (typeof id === 'number') {
      tab.dataset.hue = hueOf(id);
    }
    tab.setAttribute('role', 'tab');
    tab.setAttribute('aria-controls', `${prefix}-panel-${id}`);
    for (const part of ['state', 'name', 'time']) {
      const span = document.createElement('span');
      span.className = `jpd-OutputTabs-${part}`;
      if (part === 'state') {
        // The glyph comes from the style sheet; the name of the tab has the state, too.
        span.setAttribute('aria-hidden', 'true');
      }
      tab.append(span);
    }
    return tab;
  }

  private _label(id: TabId, name: string, time: string, state: string): void {
    const tab = this._tabs.get(id)!;
    const [, nameNode, timeNode] = tab.children;
    setText(nameNode, name);
    setText(timeNode, time);
    if (tab.dataset.state !== state) {
      tab.dataset.state = state;
    }
  }

  private _idOf(tab: HTMLElement): TabId | null {
    const id = tab.dataset.tab;
    return id === undefined ? null : /^\d+$/.test(id) ? Number(id) : id;
  }

  private _tabs = new Map<TabId, HTMLElement>();
}

/** The ranks that have a tab: all; of many ranks, the ranks that stand out and the chosen rank. */
function withTab(shown: IShown, selected: TabId, asking: readonly string[]): IShownRank[] {
  if (shown.perRank.length <= MANY_RANKS) {
    return shown.perRank;
  }
  const byRank = new Map(shown.perRank.map(one => [one.rank, one]));
  const ranks = new Set(standingOut(shown, asking));
  if (typeof selected === 'number') {
    ranks.add(selected);
  }
  return [...ranks].flatMap(rank => byRank.get(rank) ?? []);
}

/** What "folded" means: the title of the tab, and the line shown while it has the keyboard focus. */
export function foldedHint(trans: TranslationBundle): string {
  return trans.__('Folded: output that is the same on several ranks is shown once');
}

function setText(node: Element, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

function setAttribute(node: Element, name: string, value: string): void {
  if (node.getAttribute(name) !== value) {
    node.setAttribute(name, value);
  }
}
