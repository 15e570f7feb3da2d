/** Rich outputs in a list of plain DOM nodes, with JupyterLab's own output area. */
import type { IOutput } from '@jupyterlab/nbformat';
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { MessageLoop } from '@lumino/messaging';
import { Layout, Widget } from '@lumino/widgets';

/** One output that is not a stream. */
export class RichBlock extends SimplifiedOutputArea {
  /** `alt`: the text of pictures for screen readers. */
  constructor(
    rendermime: IRenderMimeRegistry,
    output: IOutput,
    trusted: boolean,
    private readonly _alt: string
  ) {
    super({
      model: new OutputAreaModel({ values: [narrowed(output)], trusted }),
      rendermime
    });
    this._output = output;
    this._describePictures();
  }

  /** Replace the output: an update_display, or a longer traceback. */
  setOutput(output: IOutput): void {
    if (output !== this._output) {
      this._output = output;
      this.model.set(0, narrowed(output));
      this._describePictures();
    }
  }

  /** JupyterLab gives pictures no text. */
  private _describePictures(): void {
    this.node.querySelectorAll<HTMLImageElement>('.jp-RenderedImage img:not([alt])').forEach(picture => {
      picture.alt = this._alt;
    });
  }

  dispose(): void {
    if (!this.isDisposed) {
      const { model } = this;
      super.dispose();
      model.dispose();
    }
  }

  private _output: IOutput;
}

// eslint-disable-next-line no-control-regex
const RULER = /^(?:\x1b\[[0-9;]*m)*-{40,}(?:\x1b\[[0-9;]*m)*$/;
const FILLED = / {4,}(?=Traceback \(most recent call last\))/;

/** A traceback without the ruler and the filling that IPython makes for 75 columns: beside labels, both would break. */
function narrowed(output: IOutput): IOutput {
  if (output.output_type !== 'error' || !Array.isArray(output.traceback)) {
    return output;
  }
  const lines = (output.traceback as string[]).join('\n').split('\n');
  const traceback = lines.filter((line, i) => i > 0 || !RULER.test(line)).map(line => line.replace(FILLED, ' '));
  return { ...output, traceback };
}

/**
 * A layout of widgets whose places in the DOM are set by others: the list is
 * plain DOM, and only rich blocks need attach and show messages.
 */
export class BlockLayout extends Layout {
  *[Symbol.iterator](): IterableIterator<Widget> {
    yield* [...this._widgets];
  }

  addWidget(widget: Widget, host: HTMLElement): void {
    this._widgets.add(widget);
    widget.parent = this.parent;
    const isAttached = this.parent?.isAttached ?? false;
    if (isAttached) {
      MessageLoop.sendMessage(widget, Widget.Msg.BeforeAttach);
    }
    host.append(widget.node);
    if (isAttached) {
      MessageLoop.sendMessage(widget, Widget.Msg.AfterAttach);
    }
  }

  removeWidget(widget: Widget): void {
    if (!this._widgets.delete(widget)) {
      return;
    }
    const isAttached = this.parent?.isAttached ?? false;
    if (isAttached) {
      MessageLoop.sendMessage(widget, Widget.Msg.BeforeDetach);
    }
    widget.node.remove();
    if (isAttached) {
      MessageLoop.sendMessage(widget, Widget.Msg.AfterDetach);
    }
  }

  dispose(): void {
    for (const widget of this._widgets) {
      widget.dispose();
    }
    this._widgets.clear();
    super.dispose();
  }

  private _widgets = new Set<Widget>();
}
