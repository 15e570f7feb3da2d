/**
 * *Paused in Debugger* over a notebook on ranks, as over a notebook on a kernel. JupyterLab's overlay is only for sessions
 * of kernels.
 */
import type { LabIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { DebugConnection } from './debugconnection';

/** JupyterLab's classes: it has the style. */
const OVERLAY = 'jp-DebuggerPausedOverlay';
const BUTTON = 'jp-DebuggerPausedButton';
const COMMANDS = { 'debugger:continue': '', 'debugger:next': '', 'debugger:terminate': 'jp-DebuggerStopButton' };

export interface IPausedOverlayOptions {
  /** The notebook's panel. */
  container: HTMLElement;
  connection: DebugConnection;
  commands: CommandRegistry;
  /** JupyterLab's own texts. */
  trans: TranslationBundle;
}

export class PausedOverlay {
  constructor(private readonly _options: IPausedOverlayOptions) {
    const { connection } = _options;
    connection.states.changed.connect(this._update, this);
    connection.changed.connect(this._update, this);
    connection.disposed.connect(this._hide, this);
  }

  private _update(): void {
    const { connection, container } = this._options;
    const isPaused = connection.isStarted && connection.states.states.some(({ stopped }) => stopped);
    // JupyterLab's setting; a version without it shows nothing over the notebook of a kernel either.
    if (!isPaused || document.body.dataset.showPausedOverlay !== 'true') {
      this._hide();
    } else if (!container.querySelector(`:scope > .${OVERLAY}`)) {
      container.append(this._create());
    }
  }

  /** JupyterLab's, too: it shows one when the notebook is opened on stopped ranks, and never removes it. */
  private _hide(): void {
    this._options.container.querySelectorAll(`:scope > .${OVERLAY}`).forEach(node => node.remove());
  }

  private _create(): HTMLElement {
    const { commands, trans } = this._options;
    const node = document.createElement('div');
    node.className = OVERLAY;
    node.style.pointerEvents = 'auto';
    const text = document.createElement('span');
    text.textContent = trans.gettext('Paused in Debugger');
    node.append(text);
    for (const [command, className] of Object.entries(COMMANDS).filter(([id]) => commands.hasCommand(id))) {
      const button = document.createElement('button');
      button.className = `${BUTTON} ${className}`.trim();
      button.title = commands.caption(command) || commands.label(command);
      (commands.icon(command) as LabIcon | undefined)?.element({ container: button, elementPosition: 'center' });
      button.onclick = () => void commands.execute(command);
      node.append(button);
    }
    return node;
  }
}
