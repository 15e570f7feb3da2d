/** The log of one rank: its page, and notes about records that are not on it. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';
import { ILogLimits, LogModel } from './model/log';
import { LogFeed } from './model/logfeed';
import type { IDistExecutions, IDistService } from '../../tokens';
import { Spoken } from '../../widgets/base/spoken';
import { LogView } from './logview';
import type { IBlockContext } from './renderblock';
import { LogSearch } from './search';

/** Share of the time for searching, because a page of a megabyte takes a while. */
const SEARCH_SHARE = 0.2;

export interface IRankLogOptions {
  readonly service: IDistService;
  readonly executions: Pick<IDistExecutions, 'isOwn'>;
  readonly group: string;
  readonly rank: number;
  readonly limits: ILogLimits;
  readonly rendermime: IBlockContext['rendermime'];
  readonly trans: TranslationBundle;
}

export class RankLog extends Widget {
  constructor(options: IRankLogOptions) {
    super();
    this.addClass('jpd-RankLog');
    this.rank = options.rank;
    this._trans = options.trans;
    this.log = new LogModel(options.limits);
    this._feed = new LogFeed(options.service, options.group, options.rank, this.log);
    this.view = new LogView(this.log, {
      rendermime: options.rendermime,
      trans: options.trans,
      isTrusted: execution => execution !== null && options.executions.isOwn(execution),
      fillGap: gap => void this._feed.fill(gap)
    });
    this.view.node.setAttribute('aria-label', options.trans.__('Output of rank %1', options.rank));
    this.search = new LogSearch(this.view.content);
    this._above = notice('jpd-RankLog-above');
    this._below = notice('jpd-RankLog-below');
    const layout = new PanelLayout();
    layout.addWidget(this._above);
    layout.addWidget(this.view);
    layout.addWidget(this._below);
    this.layout = layout;
    this.node.append(this._spokenAbove.node, this._spokenBelow.node);
    this._connect();
  }

  readonly rank: number;
  readonly log: LogModel;
  readonly view: LogView;
  readonly search: LogSearch;

  /** Emitted when the state shown in the toolbar has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Show the end and follow it. */
  setFollow(follow: boolean): void {
    this.view.follow = follow;
    if (follow && !this.log.atEnd) {
      void this._feed.toEnd();
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    window.clearTimeout(this._searchTimer);
    this.search.dispose();
    this._feed.dispose();
    this.log.dispose();
    Signal.clearData(this);
    super.dispose();
  }

  protected onAfterShow(): void {
    void this._feed.start();
  }

  protected onAfterAttach(): void {
    if (this.isVisible) {
      void this._feed.start();
    }
  }

  protected onAfterHide(): void {
    this._feed.stop();
  }

  protected onBeforeDetach(): void {
    this._feed.stop();
  }

  private _connect(): void {
    this.view.topReached.connect(() => void this._feed.older(), this);
    this.view.followChanged.connect(this._onFollow, this);
    this.view.rendered.connect(this._onRendered, this);
    this._feed.stateChanged.connect(this._updateNotices, this);
    this.search.changed.connect(() => this._changed.emit(), this);
  }

  private _onFollow(_: LogView, follow: boolean): void {
    this.log.keepsTop = !follow;
    this._changed.emit();
  }

  private _onRendered(): void {
    this._updateNotices();
    if (this.search.query !== '' && this._searchTimer === 0) {
      this._searchTimer = window.setTimeout(() => this._searchAgain(), this._searchDelay);
    }
  }

  /** Search again, because the page has changed. */
  private _searchAgain(): void {
    const begin = performance.now();
    this._searchTimer = 0;
    this.search.refresh();
    this._searchDelay = (performance.now() - begin) / SEARCH_SHARE;
  }

  private _updateNotices(): void {
    const trans = this._trans;
    const above = this._wordsAbove();
    const older = this._feed.isLoading ? trans.__('Loading\u2026') : trans.__('Load older');
    fill(this._above, above, this.log.hasOlder ? older : '', () => void this._older());
    const below = this._wordsBelow();
    fill(this._below, below, below && trans.__('Jump to the end'), () => this.setFollow(true));
    // Not with each new count.
    this._spokenAbove.say(this.log.hasOlder && !this._feed.error ? trans.__('Older lines are not shown.') : above);
    this._spokenBelow.say(below && trans.__('You are viewing older output.'));
  }

  private _wordsAbove(): string {
    const trans = this._trans;
    const { olderLines, hasOlder } = this.log;
    if (this._feed.error) {
      return trans.__('The log could not be read: %1', this._feed.error);
    }
    if (hasOlder && olderLines) {
      return trans._n(
        '%1 older line is not shown.',
        '%1 older lines are not shown.',
        olderLines,
        olderLines.toLocaleString()
      );
    }
    if (hasOlder) {
      return trans.__('Older lines are not shown.');
    }
    if (this.log.blocks.length > 0) {
      return '';
    }
    return this._feed.isLoading ? trans.__('Reading the log\u2026') : trans.__('This rank has no output yet.');
  }

  private _wordsBelow(): string {
    const { atEnd, unseen } = this.log;
    if (atEnd) {
      return '';
    }
    return unseen > 0
      ? this._trans.__('You are viewing older output (%1 newer outputs below).', unseen.toLocaleString())
      : this._trans.__('You are viewing older output.');
  }

  private async _older(): Promise<void> {
    this.view.follow = false;
    await this._feed.older();
  }

  private readonly _trans: TranslationBundle;
  private readonly _feed: LogFeed;
  private readonly _above: Widget;
  private readonly _below: Widget;
  private readonly _spokenAbove = new Spoken();
  private readonly _spokenBelow = new Spoken();
  private readonly _changed = new Signal<this, void>(this);
  private _searchTimer = 0;
  private _searchDelay = 0;
}

function notice(className: string): Widget {
  const widget = new Widget();
  widget.addClass('jpd-RankLog-notice');
  widget.addClass(className);
  widget.hide();
  return widget;
}

/** Show a text and a link; hidden without a text. Does not touch the page if nothing changed. */
function fill(widget: Widget, words: string, link: string, act: () => void): void {
  const key = `${words}|${link}`;
  if (widget.node.dataset.key === key) {
    return;
  }
  widget.node.dataset.key = key;
  widget.setHidden(words === '');
  const text = document.createElement('span');
  text.textContent = words;
  widget.node.replaceChildren(text);
  if (link) {
    const button = document.createElement('button');
    button.className = 'jpd-LogLink';
    button.textContent = link;
    button.addEventListener('click', act);
    widget.node.append(' ', button);
  }
}
