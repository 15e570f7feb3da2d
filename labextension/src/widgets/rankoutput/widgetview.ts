/** A widget of a rank: live while its rank has it, else as it was saved, else its text. */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';
import { PanelLayout, Widget } from '@lumino/widgets';
import type { ILoadedSpace } from '../../model/comms/spaces';
import { formatRanks } from '../../model/format/ranks';
import type { ITrouble, WidgetSpace } from '../../model/comms/space';

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
    const loaded = await this._options.load();
    if (this.isDisposed) {
      return;
    }
    if (!loaded) {
      this._showText(model, this._notInstalled());
      return;
    }
    const { space } = loaded;
    if (typeof id !== 'string' || !(await space.has(id))) {
      this._showText(model, space.error ? [space.error.message, space.error.hint].join(' ').trim() : '');
      const look = (): void => {
        if (this.isDisposed || typeof id !== 'string' || space.ranksOf(id).length > 0) {
          space.opened.disconnect(look);
          void (this.isDisposed ? null : this.renderModel(model));
        }
      };
      if (typeof id === 'string') {
        space.opened.connect(look);
      }
      return;
    }
    const view = await loaded.createRenderer(this._renderer);
    if (this.isDisposed) {
      view.dispose();
      return;
    }
    this._replace(view);
    await view.renderModel(model);
    this._watch(space, space.ranksOf(id));
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

  private readonly _note = document.createElement('div');
  private _ranks: readonly number[] = [];
  private _space: WidgetSpace | null = null;
}
