/** The rank output panel with its toolbar, for the main area. */
import { MainAreaWidget } from '@jupyterlab/apputils';
import { Toolbar } from '@jupyterlab/ui-components';
import { ranksIcon } from '../../widgets/base/icons';
import { ILogPanelOptions, LogPanel } from './logpanel';
import { LogToolbar } from './toolbar';

export { DEFAULT_LIMITS } from './model/log';

export class LogMainArea extends MainAreaWidget<LogPanel> {
  constructor(options: ILogPanelOptions) {
    // Not JupyterLab's reactive toolbar, which hides tools when there is little room, even one with the focus.
    super({ content: new LogPanel(options), toolbar: new Toolbar() });
    const { group, service, trans } = options;
    this.id = `jupyter-dist-log-${group.id}`;
    this.addClass('jpd-LogMainArea');
    this.title.label = trans.__('Rank output: %1', group.name);
    this.title.icon = ranksIcon;
    this.title.closable = true;
    this._tools = new LogToolbar(this.content, trans, {
      url: rank => service.logFileUrl(group.id, rank),
      fetch: rank => service.download(group.id, service.logFileUrl(group.id, rank)),
      name: rank => `${group.id}-rank-${rank}.log`
    });
    this.toolbar.addItem('tools', this._tools);
    this.toolbar.node.setAttribute('aria-label', trans.__('Rank output tools'));
    this.node.addEventListener('keydown', this, true);
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.node.removeEventListener('keydown', this, true);
      super.dispose();
    }
  }

  handleEvent(event: Event): void {
    const { ctrlKey, metaKey, key } = event as KeyboardEvent;
    if ((ctrlKey || metaKey) && key === 'f') {
      event.preventDefault();
      event.stopPropagation();
      this._tools.focusSearch();
    }
  }

  private readonly _tools: LogToolbar;
}
