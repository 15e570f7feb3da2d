/**
 * The part of JupyterLab's debugger that this extension uses. The package is JupyterLab's own and is never bundled, so
 * it is not installed for the build either.
 */
declare module '@jupyterlab/debugger' {
  import type { NotebookPanel } from '@jupyterlab/notebook';
  import type { Session } from '@jupyterlab/services';
  import type { Token } from '@lumino/coreutils';

  export interface IDebuggerHandler {
    /** Have the debugger's button of a notebook, and its breakpoints, use this connection. */
    update(widget: NotebookPanel, connection: Session.ISessionConnection | null): Promise<void>;
  }
  export const IDebuggerHandler: Token<IDebuggerHandler>;
}
