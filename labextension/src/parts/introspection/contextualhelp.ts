/**
 * Contextual Help, JupyterLab's panel, of notebooks on ranks without a kernel and of consoles on ranks. The panel shows
 * the answers of a source: JupyterLab's source asks kernels, this one asks the first rank that the cell runs on.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { IInspector } from '@jupyterlab/inspector';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Widget } from '@lumino/widgets';
import { hasPlace } from '../../model/targets/cellplace';
import { getNotebookTarget } from '../../model/targets/target';
import { loadedAtLast } from '../../services/errors';
import { IDistGroups, IDistNotebooks, IDistService } from '../../tokens';
import type { HelpSources, ISource, RankConsole } from './helpsources';

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
    const made = await this._load();
    if (!made || widget.isDisposed || this._app.shell.currentWidget !== widget) {
      return;
    }
    if (!this._sources.has(widget)) {
      this._add(widget, made);
    }
    const { handler } = this._sources.get(widget)!;
    if (this._inspector!.source !== handler) {
      this._inspector!.source = handler;
      handler.onEditorChange();
    }
  }

  /** JupyterLab has the module on its page; Notebook 7 has neither it nor the panel. */
  private async _load(): Promise<HelpSources | null> {
    this._loaded ??= import('@jupyterlab/inspector').then(
      async library => {
        this._inspector = await this._app.resolveOptionalService(library.IInspector);
        if (!this._inspector) {
          return null;
        }
        const module = await loadedAtLast(() => import(/* webpackChunkName: "contextualhelp" */ './helpsources'));
        return new module.HelpSources(library.InspectionHandler, this._service, this._groups);
      },
      () => null
    );
    return this._loaded;
  }

  /** Beside a kernel, JupyterLab's source asks the kernel's connection, which the inspection plugin has answer. */
  private _isOurs(widget: Widget): boolean {
    if (!this._tracker.has(widget)) {
      return hasPlace(widget);
    }
    const { content, sessionContext } = widget as NotebookPanel;
    return !sessionContext.session?.kernel && content.model !== null && getNotebookTarget(content.model) !== null;
  }

  private _add(widget: Widget, made: HelpSources): void {
    const isNotebook = this._tracker.has(widget);
    const source = isNotebook ? made.ofNotebook(widget as NotebookPanel) : made.ofConsole(widget as RankConsole);
    this._sources.set(widget, source);
    widget.disposed.connect(() => {
      this._sources.delete(widget);
      source.handler.dispose();
    });
  }

  private _inspector: IInspector | null = null;
  private _loaded: Promise<HelpSources | null> | null = null;
  private readonly _sources = new Map<Widget, ISource>();
}
