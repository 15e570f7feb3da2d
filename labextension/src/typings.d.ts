/**
 * The parts of JupyterLab's debugger and of its Contextual Help that this extension uses. The packages are JupyterLab's
 * own and are never bundled, so they are not installed for the build either.
 */
declare module '@jupyterlab/debugger' {
  import type { NotebookPanel } from '@jupyterlab/notebook';
  import type { SidePanel } from '@jupyterlab/ui-components';
  import type { Session } from '@jupyterlab/services';
  import type { Token } from '@lumino/coreutils';

  export interface IDebuggerHandler {
    /** Have the debugger's button of a notebook, and its breakpoints, use this connection. */
    update(widget: NotebookPanel, connection: Session.ISessionConnection | null): Promise<void>;
  }
  export const IDebuggerHandler: Token<IDebuggerHandler>;

  export interface IDebugger {
    readonly isStarted: boolean;
    /** `title`: the panel's title. */
    readonly model: {
      title: string;
      /** Setting the frame has its variables read. */
      readonly callstack: { frame: object | null | undefined };
    };
    readonly session: { connection: unknown } | null;
    /** The name of the file that stands for a cell with this code. */
    getCodeId(code: string): string;
  }
  export const IDebugger: Token<IDebugger>;

  /** The panel. */
  export type IDebuggerSidebar = SidePanel;
  export const IDebuggerSidebar: Token<IDebuggerSidebar>;

  /** What the panel calls files. */
  export interface IDebuggerDisplayRegistry {
    register(provider: {
      canHandle(source: { path?: string }): boolean;
      getDisplayName(source: { path?: string }): string;
    }): void;
  }
  export const IDebuggerDisplayRegistry: Token<IDebuggerDisplayRegistry>;
}

declare module '@jupyterlab/inspector' {
  import type { CodeEditor } from '@jupyterlab/codeeditor';
  import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
  import type { Token } from '@lumino/coreutils';

  /** The panel; without a source it shows nothing new. */
  export interface IInspector {
    source: object | null;
  }
  export const IInspector: Token<IInspector>;

  export interface IInspectionRequest {
    text: string;
    /** In characters. */
    offset: number;
  }

  /** A source for the panel: asks about what is at the cursor of an editor while the panel is open. */
  export class InspectionHandler {
    constructor(options: {
      connector: { fetch(request: IInspectionRequest): Promise<object> };
      rendermime: IRenderMimeRegistry;
    });
    editor: CodeEditor.IEditor | null;
    onEditorChange(): void;
    dispose(): void;
  }
}
