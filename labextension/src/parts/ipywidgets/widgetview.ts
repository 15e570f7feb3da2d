/** A widget of a rank: live while its rank has it, else as it was saved, else its text. */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';
import { PanelLayout, Widget } from '@lumino/widgets';
import type { ILoadedSpace } from './spaces';
import { formatRanks } from '../../model/format/ranks';
import type { ITrouble, WidgetSpace } from './comms/space';

export interface IWidgetViewOptions {
  trans: TranslationBundle;
  load(): Promise<ILoadedSpace | null>;
  /** Whether no other view on this page shows this sentence on why widgets are text; from now on this one does. */
  isNew(sentence: string, view: Widget): boolean;
}

export class RankWidgetView extends Widget implements IRenderMime.IRenderer {
  constructor(
    private readonly _renderer: IRenderMime.IRendererOptions,
    private readonly _options: IWidgetViewOptions
  ) {
    super();
    this.addClass('jpd-RankWidget');
    this.layout = new PanelLayout();
    this._note.className = 'jpd-RankWidget-note';
    this._note.setAttribute('role', 'status');
    this._note.hidden = true;
    this.node.append(this._note);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const id = (model.data[this._renderer.mimeType] as { model_id?: unknown } | undefined)?.model_id;
    if (typeof id === 'string' && id === this._live) {
      return; // the text beside it has changed, and the widget shows its state by itself
    }
    const turn = ++this._turn;
    const isOver = (): boolean => this.isDisposed || turn !== this._turn;
    const loaded = await this._options.load();
    const isKnown = typeof id === 'string' && (await loaded?.space.has(id));
    if (isOver()) {
      return;
    }
    if (loaded && isKnown) {
      await this._showLive(loaded, id, model, isOver);
    } else if (loaded) {
      const { error } = loaded.space;
      this._showText(model, error ? [error.message, error.hint].join(' ').trim() : '');
      this._lookAgain(loaded.space, id, model, isOver);
    } else {
      this._showText(model, this._notInstalled());
    }
  }

  private async _showLive(
    { space, createRenderer }: ILoadedSpace,
    id: string,
    model: IRenderMime.IMimeModel,
    isOver: () => boolean
  ): Promise<void> {
    const view = await createRenderer(this._renderer);
    if (isOver()) {
      view.dispose();
      return;
    }
    this._live = id;
    this._replace(view);
    try {
      await view.renderModel(model);
    } catch (reason) {
      if (isOver()) {
        return; // its place is gone: JupyterLab would show this error over the new view
      }
      throw reason;
    }
    this._watch(space, space.ranksOf(id));
  }

  /** Show the widget when it is known. */
  private _lookAgain(space: WidgetSpace, id: unknown, model: IRenderMime.IMimeModel, isOver: () => boolean): void {
    if (typeof id !== 'string') {
      return;
    }
    const look = (): void => {
      if (isOver() || space.ranksOf(id).length > 0) {
        space.opened.disconnect(look);
        void (isOver() ? null : this.renderModel(model));
      }
    };
    space.opened.connect(look);
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._space?.troubleChanged.disconnect(this._onTrouble, this);
      this._space = null;
      super.dispose();
    }
  }

  private _watch(space: WidgetSpace, ranks: readonly number[]): void {
    if (ranks.length === 0 || this.isDisposed) {
      return;
    }
    this._space?.troubleChanged.disconnect(this._onTrouble, this);
    this._space = space;
    this._ranks = ranks;
    if (ranks.length > 1) {
      this.node.title = this._options.trans.__(
        'One for ranks %1: what you change goes to each of them',
        formatRanks(ranks)
      );
    }
    space.troubleChanged.connect(this._onTrouble, this);
    this._onTrouble(space, ranks[0]);
  }

  private _onTrouble(space: WidgetSpace, rank: number): void {
    if (this._ranks.includes(rank)) {
      const troubled = this._ranks.find(each => space.troubleOf(each) !== null) ?? rank;
      this._say(this._words(space.troubleOf(troubled), troubled));
    }
  }

  private _words(trouble: ITrouble | null, rank: number): string {
    const { trans } = this._options;
    if (!trouble) {
      return '';
    }
    if (trouble.kind === 'dead') {
      return trans.__('Rank %1 is dead: this is its last state.', rank);
    }
    return trouble.error
      ? [trouble.error.message, trouble.error.hint].join(' ').trim()
      : trans.__('Rank %1 is running: it answers when its cell or callback has ended.', rank);
  }

  private _say(text: string): void {
    if (this._note.textContent !== text) {
      this._note.textContent = text;
      this._note.hidden = !text;
    }
  }

  private _showText(model: IRenderMime.IMimeModel, note: string): void {
    const text = model.data['text/plain'];
    const shown = new Widget({ node: document.createElement('pre') });
    shown.addClass('jpd-RankWidget-text');
    shown.node.textContent = Array.isArray(text) ? text.join('') : String(text ?? '');
    this._live = null;
    this._replace(shown);
    this._say(note && this._options.isNew(note, this) ? note : '');
  }

  private _replace(content: Widget): void {
    const layout = this.layout as PanelLayout;
    [...layout.widgets].forEach(widget => widget.dispose());
    layout.insertWidget(0, content);
    this.node.append(this._note);
  }

  private _notInstalled(): string {
    return this._options.trans.__(
      'Widgets are shown as text: JupyterLab has no extension for them, or it is disabled. Install ipywidgets in the Python environment of the Jupyter server, and reload the page.'
    );
  }

  /** The widget that is shown live. */
  private _live: string | null = null;
  private readonly _note = document.createElement('div');
  private _ranks: readonly number[] = [];
  private _space: WidgetSpace | null = null;
  /** Grows with each call: of two that wait for the same, the later one shows. */
  private _turn = 0;
}
