/**
 * The outputs of a cell that belong to the bundle in its first output (model/outputs/portable.ts). They are for readers
 * without this extension; here the bundle shows them.
 */
import type { IOutput } from '@jupyterlab/nbformat';
import type { IOutputAreaModel } from '@jupyterlab/outputarea';
import { IRenderMimeRegistry, MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Message } from '@lumino/messaging';
import { PanelLayout, Widget } from '@lumino/widgets';
import { findParts, hasParts, markOf, PART_MIME } from '../../model/outputs/portable';
import { FINAL_STATES, IRanksBundle } from '../../services/protocol';

/** On what is not shown, because the bundle shows it. */
const HIDDEN = 'jpd-mod-part';

/** JupyterLab's output area, as far as it is used here. */
interface IOutputArea extends Widget {
  readonly model: IOutputAreaModel;
  readonly widgets: readonly Widget[];
}

/** The output area around a widget, and the place of the widget's output in it. */
function areaOf(widget: Widget): { area: IOutputArea; own: number } | null {
  for (let at: Widget = widget; at.parent; at = at.parent) {
    if (at.parent.hasClass('jp-OutputArea')) {
      const area = at.parent as IOutputArea;
      return { area, own: area.widgets.indexOf(at) };
    }
  }
  return null;
}

/** How often, and after what time, missing parts are looked for. */
const MAX_LOOKS = 20;
const LOOK_MS = 200;

/** The parts of one widget's bundle. They may come a moment later; if not, they are shown as any reader shows them. */
export class Parts {
  constructor(
    private readonly _widget: Widget,
    private readonly _lookAgain: () => void
  ) {}

  get isJoined(): boolean {
    return this._joined !== null;
  }

  /** Forget the bundle: there is a new one. */
  reset(): void {
    this._joined = null;
    this._looks = 0;
  }

  /** The bundle with its parts, which are hidden; without them while they are missing. */
  join(bundle: IRanksBundle): IRanksBundle {
    if (this._joined) {
      return this._joined;
    }
    this._joined = withParts(this._widget, bundle);
    if (this._joined) {
      this._hideRepeated();
      return this._joined;
    }
    if (this._widget.isAttached && this._looks < MAX_LOOKS) {
      // At first soon: who writes them writes them right after the bundle.
      setTimeout(this._lookAgain, this._looks === 0 ? 0 : LOOK_MS);
      this._looks += 1;
    } else if (this._looks === MAX_LOOKS) {
      showParts(this._widget);
    }
    return { ...bundle, items: bundle.items.filter(({ part }) => part === undefined) };
  }

  /** Hide the error that ends a kernel's cell, which comes after the bundle and repeats it. */
  private _hideRepeated(): void {
    const { _joined: bundle, _widget: widget } = this;
    const place = bundle && FINAL_STATES.has(bundle.state) && bundle.state !== 'ok' ? areaOf(widget) : null;
    for (let i = (place?.own ?? 0) + 1; place && i < place.area.widgets.length; i++) {
      if (repeats(place.area.model.get(i)?.toJSON(), bundle!)) {
        place.area.widgets[i].addClass(HIDDEN);
      }
    }
    if (place && !this._isFollowing) {
      this._isFollowing = true;
      place.area.model.changed.connect(() => this._hideRepeated(), widget); // for as long as the widget is there
    }
  }

  private _joined: IRanksBundle | null = null;
  private _looks = 0;
  private _isFollowing = false;
}

/** Whether an output is a `RankError` without tracebacks, with an error of this bundle, or that it was interrupted. */
function repeats(output: IOutput | undefined, { items, error, state }: IRanksBundle): boolean {
  const { ename, evalue, traceback } = (output ?? {}) as { ename?: string; evalue?: string; traceback?: string[] };
  const raised = items.map(item => item.output).filter(found => found?.output_type === 'error');
  const shown = [error?.message, ...raised.map(found => `${found!.ename}: ${found!.evalue}`)];
  const isRankError = ename === 'RankError' && shown.some(text => text && evalue?.includes(text));
  return traceback?.length === 1 && (isRankError || (ename === 'CellInterrupted' && state === 'interrupted'));
}

function withParts(widget: Widget, bundle: IRanksBundle): IRanksBundle | null {
  if (!hasParts(bundle)) {
    return bundle;
  }
  const place = areaOf(widget);
  if (!place || place.own < 0) {
    return null;
  }
  const { area, own } = place;
  const after = area.model.toJSON().slice(own + 1);
  const found = findParts(bundle, after);
  if (found) {
    const isPart = (at: number): boolean => found.places.has(at) || markOf(after[at])?.of === bundle.execution_id;
    area.widgets.forEach((child, i) => child.toggleClass(HIDDEN, i > own && isPart(i - own - 1)));
  }
  return found?.joined ?? null;
}

/** Show the parts of a bundle that cannot be read. */
function showParts(widget: Widget): void {
  for (const child of areaOf(widget)?.area.widgets ?? []) {
    child.removeClass(HIDDEN);
    for (const part of child.children()) {
      if (part instanceof PartRenderer) {
        part.reveal();
      }
    }
  }
}

/** Hides a part; without its bundle it shows what any reader would show. */
export class PartRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(private readonly _rendermime: IRenderMimeRegistry) {
    super();
    this.layout = new PanelLayout();
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._model = model;
    this._decide();
  }

  /** Show what any reader would show. */
  reveal(): void {
    void this._show();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._decide();
  }

  private _decide(): void {
    const found = areaOf(this);
    if (!found) {
      return;
    }
    if (found.area.node.querySelector('.jpd-Ranks') !== null) {
      this.parent!.addClass(HIDDEN);
    } else {
      this.reveal();
    }
  }

  private async _show(): Promise<void> {
    if (!this._model || this._content) {
      return;
    }
    const data = { ...this._model.data };
    delete data[PART_MIME];
    const mime = this._rendermime.preferredMimeType(data);
    if (mime) {
      const { trusted } = this._model;
      this._content = this._rendermime.createRenderer(mime);
      (this.layout as PanelLayout).addWidget(this._content);
      await this._content.renderModel(new MimeModel({ data, trusted }));
    }
  }

  private _content: IRenderMime.IRenderer | null = null;
  private _model: IRenderMime.IMimeModel | null = null;
}
