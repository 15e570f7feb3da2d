/**
 * Renders the output of ranks: folded, and rank by rank. Live while the cell
 * runs, and from the file alone afterwards.
 */
import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Message } from '@lumino/messaging';
import { PanelLayout, Widget } from '@lumino/widgets';
import { parseBundle } from '../../model/outputs/parsebundle';
import { LateFollower } from '../../model/cells/output/lateoutput';
import { includesRank } from '../../model/format/ranks';
import { FINAL_STATES, IInputPrompt, IRanksBundle, RANKS_MIME } from '../../services/protocol';
import { localized } from '../../services/errors';
import type { IFollowedExecution } from '../../tokens';
import { createHelpLink } from '../base/errornote';
import { RankFinder } from '../states/rankfinder';
import type { IRanksRendererOptions } from './options';
import { Panes } from './panes';
import { Parts } from './parts';
import { Prompts } from './prompts';
import { fromBundle, fromFollowed, IShown } from './items/shown';
import { ActionButtons } from './header/actionbuttons';
import { Agreement, describePrompt, numberResult } from './agreement';
import { HeaderNotes } from './found/headernotes';
import { NumbersSwitch } from './header/numbersswitch';
import { IRankNote, RankNotes } from './notes/ranknotes';
import { RankButtons } from './header/rankbuttons';
import { ReplaceButton } from './notes/replacebutton';
import { countStatuses } from './header/standingout';
import type { IWaitWords } from './header/summary';
import { SummaryLine } from './header/summaryline';
import { IMoreTab, RankTabBar, TabId } from './header/tabbar';
import { stopWords } from './header/stops';
import { waitWords } from './notes/waitwords';
import { createAdvice, createError, createHint } from './elements';

/** How often running times are redrawn. */
const CLOCK_MS = 1000;
/** A connection lost for longer is shown: every page starts without one, and short interruptions recover. */
const STALE_MS = 2000;
/** Share of the time for drawing, so that the page stays usable with much output. */
const DRAW_SHARE = 0.4;
/** What is drawn seldom is drawn at once: a cell saves up this much of its share. */
const SAVED_UP_MS = 100;

export class RanksRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(options: IRanksRendererOptions) {
    super();
    this.addClass('jpd-Ranks');
    this._options = options;
    this._content = this.layout = new PanelLayout();
    this._prefix = `jpd-ranks-${nextId++}`;
    this._tabs = new RankTabBar({
      trans: options.trans,
      prefix: this._prefix,
      onSelect: tab => this._select(tab)
    });
    this._finder = new RankFinder({ trans: options.trans, onSelect: rank => this._select(rank) });
    this._summary = new SummaryLine(options.trans);
    this._error = createError();
    const kill = (rank: number | null): void => options.killRank(this._bundle!.group.id, rank);
    this._notes = new RankNotes({ trans: options.trans, kill });
    this._prompts = new Prompts({
      trans: options.trans,
      answer: body => options.answer(this._bundle!.group.id, this._bundle!.execution_id, body)
    });
    this._replace = new ReplaceButton(options);
    this._actions = new ActionButtons(options.actions);
    this._rankButtons = new RankButtons(options.trans);
    const redraw = (): void => this._schedule();
    this._found = new HeaderNotes(options.headerNotes, { ...options, redraw });
    this._late = new LateFollower(options);
    this._numbers = new NumbersSwitch({
      trans: options.trans,
      condenses: () => options.condenses(),
      redraw: () => this._draw()
    });
    const { _prefix: prefix, _content: content, _numbers: numbers } = this;
    this._panes = new Panes({ ...options, prefix, content, numbers, redraw: () => this._schedule() });
    options.actions.changed.connect(this._schedule, this);
    this._content.addWidget(this._createHeader());
    this.node.append(this._prompts.node, this._error);
    options.executions.followed.connect(this._onFollowed, this);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const bundle = parseBundle(model.data[RANKS_MIME]);
    this._unchecked = model.data[RANKS_MIME];
    this._bundle = bundle;
    this._parts.reset();
    for (const part of this._content.widgets) {
      part.setHidden(!bundle);
    }
    this._fallback?.dispose();
    this._fallback = null;
    if (!bundle) {
      await this._showText(model);
      return;
    }
    if (model.trusted !== this._trusted) {
      this._trusted = model.trusted;
      this._panes.clear();
    }
    this._connect();
    this._isDrawn = this._isPlaced = false;
    if (this.isAttached) {
      this._draw();
    } else {
      this._schedule(); // the output depends on its notebook, to which it is attached in a moment
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._options.executions.followed.disconnect(this._onFollowed, this);
    this._options.actions.changed.disconnect(this._schedule, this);
    this._followed?.changed.disconnect(this._schedule, this);
    this._followed = null;
    this._late.dispose();
    this._tabs.dispose();
    this._panes.dispose();
    this._finder.dispose();
    this._replace.dispose();
    this._found.dispose();
    cancelAnimationFrame(this._frame);
    clearTimeout(this._timer);
    clearTimeout(this._clock);
    super.dispose();
  }

  /** Its parts are in the output area, which it has been given now. */
  protected onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (this._bundle && !(this._isPlaced && this._parts.isJoined)) {
      this._draw(); // what depends on its notebook, too, as whether that has the same group
    }
  }

  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._schedule();
  }

  /** Show the fallback text of an output that is not a valid bundle. */
  private async _showText(model: IRenderMime.IMimeModel): Promise<void> {
    const { rendermime, trans } = this._options;
    const text = model.data['text/plain'];
    const words = trans.__('This rank output cannot be read.');
    const data = { 'text/plain': typeof text === 'string' && text ? text : words };
    this._error.hidden = true;
    this._fallback = rendermime.createRenderer('text/plain');
    this._content.addWidget(this._fallback);
    await this._fallback.renderModel(new MimeModel({ data, trusted: model.trusted }));
  }

  private _onFollowed(_: unknown, execution: string): void {
    if (this._bundle?.execution_id === execution) {
      this._connect();
      this._schedule();
    }
  }

  /** Use the live view, if there is one and the output is trusted. */
  private _connect(): void {
    const { execution_id: id } = this._bundle!;
    // An untrusted notebook shows its saved output, sanitized, because it could name any execution.
    const live = this._trusted ? this._options.executions.find(id) : null;
    if (live !== this._followed && (live || this._followed?.id !== id)) {
      this._followed?.changed.disconnect(this._schedule, this);
      this._followed = live;
      live?.changed.connect(this._schedule, this);
    }
  }

  private _shown(): IShown {
    const bundle = this._bundle!;
    // Also hides the parts while the view is live.
    const joined = this._parts.join(bundle);
    const items = this._followed?.id === bundle.execution_id ? this._followed.items : joined.items;
    if (this._late.update(bundle, items, this._trusted)) {
      this._connect();
    }
    const { _followed: followed } = this;
    if (!followed?.execution || followed.id !== bundle.execution_id) {
      return fromBundle(joined);
    }
    const shown = fromFollowed(followed, bundle);
    // The error that ended the live view is only in the bundle.
    return FINAL_STATES.has(bundle.state) ? { ...shown, state: bundle.state, error: bundle.error ?? null } : shown;
  }

  /** JupyterLab makes the outputs of all cells when it opens a notebook, and attaches each when it is seen. */
  private _isNeeded(): boolean {
    return this._isDrawn || this.isAttached || this._followed !== null;
  }

  private _schedule(): void {
    if (this._timer || this._frame || this.isDisposed || !this._bundle || !this._isNeeded()) {
      return;
    }
    const wait = this._nextDraw - performance.now();
    if (wait <= 0) {
      this._drawInFrame();
      return;
    }
    this._timer = setTimeout(() => {
      this._timer = undefined;
      this._drawInFrame();
    }, wait);
  }

  private _drawInFrame(): void {
    this._frame = requestAnimationFrame(() => {
      this._frame = 0;
      this._draw();
    });
  }

  private _draw(): void {
    const start = performance.now();
    cancelAnimationFrame(this._frame);
    clearTimeout(this._timer);
    [this._frame, this._timer] = [0, undefined];
    this._isDrawn = true;
    this._isPlaced = this.isAttached;
    const shown = this._shown();
    const now = this._options.groups.clock.now();
    const more = this._panes.read(shown);
    if (!isTab(this._selected, shown, more)) {
      this._selected = 'folded';
    }
    this.node.dataset.state = shown.state;
    this.toggleClass('jpd-mod-single', shown.perRank.length === 1);
    this.toggleClass('jpd-mod-moreTabs', more.length > 0);
    const isOpen = !FINAL_STATES.has(shown.state);
    const isStale = isOpen && this._isStale();
    this._tabs.update(
      { shown, more, now, asking: isStale ? [] : this._asking().map(({ ranks }) => ranks) },
      this._selected
    );
    this._finder.update(shown.ranks, countStatuses(shown));
    this.node.dataset.connected = String(!isStale);
    this._updateFound(isStale, now);
    const home = this._options.groupOf(this.node);
    const isOwnGroup = home === shown.group.name;
    const { hint } = this._found;
    this._summary.update(shown, { now, isStale, isOwnGroup, hint, waiting: at => this._waiting(at) });
    // Not twice; a rank that must be killed stays.
    this._notes.update(isStale ? [] : this._rankNotes().filter(note => !this._found.coversRanks || note.isStuck));
    this._actions.update(shown, this._trusted);
    this.toggleClass('jpd-mod-quiet', shown.state === 'ok' && this._selected === 'folded');
    this._quieten(shown, isStale, isOwnGroup || home === null);
    this._drawError(shown);
    this._drawPane(shown);
    const took = performance.now() - start;
    this._nextDraw = Math.max(this._nextDraw, start - SAVED_UP_MS) + took / DRAW_SHARE;
    clearTimeout(this._clock);
    if (isOpen) {
      this._clock = setTimeout(() => this._tick(), CLOCK_MS);
    }
  }

  /** Take the header out of the way while it has no news. `isExpected`: the notebook uses the group. */
  private _quieten(shown: IShown, isStale: boolean, isExpected: boolean): void {
    const agree = this._agreement.update(shown, performance.now());
    const { _options: options } = this;
    const isSaid = [
      options.showsHeaders() || this._selected !== 'folded' || isStale || !isExpected,
      this._found.isShown,
      this._rankNotes().length > 0 || this._asking().length > 0 || this._isWaitNews()
    ].includes(true);
    const isQuiet = agree && !isSaid;
    this.toggleClass('jpd-mod-agrees', isQuiet);
    this.toggleClass('jpd-mod-silent', isQuiet && shown.items.length === 0);
    describePrompt(this.node, isQuiet ? this._summary.text : '');
    numberResult(this.node, shown, isQuiet);
  }

  /** Draw the running time, or look again whether the cell is back: what a page scrolls away is not drawn. */
  private _tick(): void {
    if (this.isVisible) {
      this._schedule();
    } else {
      this._clock = setTimeout(() => this._tick(), CLOCK_MS);
    }
  }

  /** Only for executions that the server lists as queued or running; a file may claim it forever. */
  private _waiting(now: number | null): IWaitWords | null {
    const execution = this._followed?.execution;
    if (execution?.state === 'running') {
      const stop = this._options.stopOf(execution);
      return stop && { words: stopWords(this._options.trans, stop), isState: stop.isWhole };
    }
    if (execution?.state !== 'queued') {
      return null;
    }
    const awaited = this._options.waitsFor(execution);
    return awaited && { words: waitWords(this._options.trans, awaited, execution.notebook, now), isState: false };
  }

  /** Of the cells of a notebook that wait for each other, the first has the words. */
  private _isWaitNews(): boolean {
    const execution = this._followed?.execution;
    const isBehind = execution?.state === 'queued' && this._options.isBehindOwn(execution);
    return !isBehind && this._waiting(null) !== null;
  }

  private _rankNotes(): IRankNote[] {
    const execution = this._followed?.execution;
    return execution?.state === 'running' ? this._options.notesOf(execution) : [];
  }

  private _updateFound(isStale: boolean, now: number): void {
    const { _bundle: bundle, _followed: followed, _trusted: isTrusted, _unchecked: unchecked } = this;
    const execution = followed?.id === bundle!.execution_id ? followed.execution : null;
    const isHung = execution?.state === 'running' && this._options.stopOf(execution) !== null;
    this._found.update({ bundle: bundle!, unchecked, execution, isTrusted, isStale, isHung, now });
  }

  private _createHeader(): Widget {
    const header = new Widget();
    header.addClass('jpd-Ranks-header');
    const row = document.createElement('div');
    row.className = 'jpd-Ranks-row';
    row.append(
      this._tabs.node,
      this._finder.node,
      ...this._found.labels,
      ...this._summary.nodes,
      this._numbers.node,
      this._rankButtons.node,
      this._actions.node,
      ...this._found.buttons
    );
    const { _found: found, _notes: notes } = this;
    const hint = createHint(this._options.trans);
    header.node.append(row, hint, ...found.nodes, notes.node);
    found.watch(header.node);
    return header;
  }

  private _asking(): readonly IInputPrompt[] {
    const execution = this._followed?.execution;
    return execution?.state === 'running' ? (execution.asking ?? []) : [];
  }

  private _isStale(): boolean {
    const now = performance.now();
    this._lostAt = this._options.isConnected() ? null : (this._lostAt ?? now);
    return this._lostAt !== null && now - this._lostAt > STALE_MS;
  }

  private _drawError({ error: given, state }: IShown): void {
    const error = given && localized(given);
    const hidden = !error || state === 'ok';
    this._error.hidden = hidden;
    const text = hidden ? '' : [error.message, error.hint].join(' ').trim();
    if (this._errorText !== text) {
      this._errorText = text;
      const parts = hidden ? [] : [error.message, ' ', createAdvice(error), createHelpLink(error), this._replace.node];
      this._error.replaceChildren(...parts);
    }
    this._replace.show(this._trusted && !hidden && error.code === 'rank_dead' ? this._bundle!.group.id : null);
  }

  private _drawPane(shown: IShown): void {
    const items = this._panes.show(this._selected, shown, this._trusted);
    this._rankButtons.update(typeof this._selected === 'number' ? this._selected : null, items);
    this._prompts.update(this._asking(), this._selected);
    if (this.node.lastElementChild !== this._error) {
      // Below a new pane. Not each time: a field that is moved loses the focus.
      this.node.append(this._prompts.node, this._error);
    }
  }

  private _select(tab: TabId): void {
    if (tab !== this._selected && this._bundle) {
      this._selected = tab;
      this._draw();
    }
  }

  private readonly _actions: ActionButtons;
  private readonly _agreement = new Agreement();
  private _bundle: IRanksBundle | null = null;
  private _clock: ReturnType<typeof setTimeout> | undefined;
  private _content: PanelLayout;
  private _error: HTMLElement;
  private _errorText = '';
  private readonly _finder: RankFinder;
  private readonly _found: HeaderNotes;
  private _followed: IFollowedExecution | null = null;
  private _fallback: IRenderMime.IRenderer | null = null;
  private _frame = 0;
  private _isDrawn = false;
  /** Whether it was in a notebook when it was drawn. */
  private _isPlaced = false;
  private _lostAt: number | null = null;
  private _nextDraw = 0;
  private _notes: RankNotes;
  private readonly _numbers: NumbersSwitch;
  private _options: IRanksRendererOptions;
  private readonly _panes: Panes;
  private _parts = new Parts(this, () => this._schedule());
  private _prefix: string;
  private _prompts: Prompts;
  private readonly _rankButtons: RankButtons;
  private _replace: ReplaceButton;
  private _selected: TabId = 'folded';
  private readonly _summary: SummaryLine;
  private _tabs: RankTabBar;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _trusted = false;
  /** The bundle as it is in the file. */
  private _unchecked: unknown = null;
  private _late: LateFollower;
}

function isTab(tab: TabId, { ranks }: IShown, more: readonly IMoreTab[]): boolean {
  return typeof tab === 'number' ? includesRank(ranks, tab) : tab === 'folded' || more.some(({ id }) => id === tab);
}

let nextId = 0;
