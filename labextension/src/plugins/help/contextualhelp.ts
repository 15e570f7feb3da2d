/**
 * Contextual Help, JupyterLab's panel, of notebooks on ranks without a kernel and of consoles on ranks. The panel shows
 * what a source tells it: JupyterLab's own asks kernels, these ask the first rank that the cell runs on.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { CodeCell } from '@jupyterlab/cells';
import type { IInspectionRequest, IInspector, InspectionHandler } from '@jupyterlab/inspector';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Widget } from '@lumino/widgets';
import { hasPlace, IPlace, placeOf } from '../../model/notebooks/cellplace';
import { getNotebookTarget } from '../../model/notebooks/target';
import { IDistGroups, IDistNotebooks, IDistService } from '../../tokens';
import type { GroupConsole } from '../../widgets/console/console';
import { inspectingKernel } from './rankanswer';

export const contextualHelpPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:contextual-help',
  description: 'Shows in Contextual Help what ranks know, without a kernel and for consoles.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistNotebooks, INotebookTracker],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    notebooks: IDistNotebooks,
    tracker: INotebookTracker
  ): void => {
    const help = new ContextualHelp(app, service, groups, tracker);
    const update = (): void => help.update();
    const open = (panel: NotebookPanel): void => {
      panel.sessionContext.kernelChanged.connect(update, help);
      void panel.context.ready.then(() => panel.content.model?.metadataChanged.connect(update, help));
    };
    tracker.forEach(open);
    tracker.widgetAdded.connect((_, panel) => open(panel), app);
    app.shell.currentChanged?.connect(update, help);
    void app.restored.then(update);
    // A rank that was busy may be idle now.
    notebooks.changed.connect(() => help.askAgain(), help);
  }
};

type Library = typeof import('@jupyterlab/inspector');

class ContextualHelp {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _service: IDistService,
    private readonly _groups: IDistGroups,
    private readonly _tracker: INotebookTracker
  ) {}

  /** Make the widget that has the focus the panel's source, if it is one of ours. */
  update(): void {
    const widget = this._app.shell.currentWidget;
    if (widget && (this._sources.has(widget) || this._isOurs(widget))) {
      // JupyterLab sets its own source at the same signal.
      void Promise.resolve().then(() => this._show(widget));
    }
  }

  askAgain(): void {
    const widget = this._app.shell.currentWidget;
    const source = widget && this._sources.get(widget);
    if (source?.connector.wasBusy) {
      source.handler.onEditorChange();
    }
  }

  private async _show(widget: Widget): Promise<void> {
    const library = await this._load();
    if (!library || widget.isDisposed || this._app.shell.currentWidget !== widget) {
      return;
    }
    if (!this._sources.has(widget)) {
      this._add(widget, library);
    }
    const { handler } = this._sources.get(widget)!;
    if (this._inspector!.source !== handler) {
      this._inspector!.source = handler;
      handler.onEditorChange();
    }
  }

  /** JupyterLab has the module on its page; Notebook 7 has neither it nor the panel. */
  private async _load(): Promise<Library | null> {
    this._library ??= import('@jupyterlab/inspector').then(
      async library => {
        this._inspector = await this._app.resolveOptionalService(library.IInspector);
        return this._inspector && library;
      },
      () => null
    );
    return this._library;
  }

  /** Beside a kernel, JupyterLab's source asks the kernel's connection, which the inspection plugin has answer. */
  private _isOurs(widget: Widget): boolean {
    if (!this._tracker.has(widget)) {
      return hasPlace(widget);
    }
    const { content, sessionContext } = widget as NotebookPanel;
    return !sessionContext.session?.kernel && content.model !== null && getNotebookTarget(content.model) !== null;
  }

  private _add(widget: Widget, library: Library): void {
    const isNotebook = this._tracker.has(widget);
    const source = isNotebook ? this._ofNotebook(widget as NotebookPanel, library) : this._ofConsole(widget as GroupConsole, library);
    this._sources.set(widget, source);
    widget.disposed.connect(() => {
      this._sources.delete(widget);
      source.handler.dispose();
    });
  }

  private _ofNotebook(panel: NotebookPanel, library: Library): ISource {
    const { content, sessionContext } = panel;
    const place = (): IPlace | null => (panel.isDisposed ? null : placeOf(this._groups, content.model, content.activeCell?.model));
    const kernel = (): Kernel | null => sessionContext.session?.kernel ?? null;
    const source = this._source(library, content.rendermime, place, kernel);
    const follow = (): void => {
      const cell = content.activeCell;
      void cell?.ready.then(() => {
        if (cell === content.activeCell) {
          source.handler.editor = cell.editor;
        }
      });
    };
    content.activeCellChanged.connect(follow);
    follow();
    return source;
  }

  private _ofConsole(panel: GroupConsole, library: Library): ISource {
    const { content } = panel;
    const source = this._source(library, content.rendermime, () => (panel.isDisposed ? null : panel.rankPlace), () => null);
    const follow = (_: unknown, cell: CodeCell | null): void => {
      source.handler.editor = cell?.editor ?? null;
    };
    content.promptCellCreated.connect(follow);
    follow(content, content.promptCell);
    return source;
  }

  private _source(
    library: Library,
    rendermime: NotebookPanel['content']['rendermime'],
    place: () => IPlace | null,
    kernel: () => Kernel | null
  ): ISource {
    const connector = new RankConnector(this._service, place, kernel);
    return { connector, handler: new library.InspectionHandler({ connector, rendermime }) };
  }

  private _inspector: IInspector | null = null;
  private _library: Promise<Library | null> | null = null;
  private readonly _sources = new Map<Widget, ISource>();
}

interface ISource {
  connector: RankConnector;
  handler: InspectionHandler;
}

type Kernel = Pick<ReturnType<typeof inspectingKernel>, 'requestInspect'>;

/** Asks the rank; the kernel if the cell runs there. */
class RankConnector {
  constructor(
    private readonly _service: IDistService,
    private readonly _place: () => IPlace | null,
    private readonly _kernel: () => Kernel | null
  ) {}

  /** Whether the last answer was that of a rank that ran a cell. */
  wasBusy = false;

  async fetch({ text, offset }: IInspectionRequest): Promise<object> {
    const isBusy = (busy: boolean): void => {
      this.wasBusy = busy;
    };
    const kernel = this._place() ? inspectingKernel(this._service, this._place, isBusy) : this._kernel();
    const { content } = (await kernel?.requestInspect({ code: text, cursor_pos: offset, detail_level: 1 })) ?? {};
    if (content?.status !== 'ok' || !content.found) {
      throw new Error('No documentation.'); // leaves the panel as it is
    }
    return content;
  }
}
