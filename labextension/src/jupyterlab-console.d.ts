/**
 * JupyterLab's code console. Every page of JupyterLab and of Notebook 7 has this module and shares it, so it is neither
 * installed nor bundled; these are the parts of its types that are used.
 */
declare module '@jupyterlab/console' {
  import type { ISessionContext } from '@jupyterlab/apputils';
  import type { Cell, CodeCell, CodeCellModel, ICodeCellModel, IRawCellModel, RawCellModel } from '@jupyterlab/cells';
  import type { IEditorMimeTypeService } from '@jupyterlab/codeeditor';
  import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
  import type { ITranslator } from '@jupyterlab/translation';
  import type { JSONObject } from '@lumino/coreutils';
  import type { ISignal } from '@lumino/signaling';
  import { Widget } from '@lumino/widgets';

  export interface IRunCellOptions {
    cell: CodeCell;
    sessionContext: ISessionContext;
    onCellExecuted(args: { cell: CodeCell; executionDate: Date; success: boolean; error?: Error | null }): void;
  }

  export class CodeConsole extends Widget {
    constructor(options: CodeConsole.IOptions);
    readonly cells: Iterable<Cell> & { changed: ISignal<unknown, { type: string; oldValues: Cell[] }> };
    readonly promptCell: CodeCell | null;
    readonly promptCellCreated: ISignal<CodeConsole, CodeCell>;
    readonly rendermime: IRenderMimeRegistry;
    addCell(cell: CodeCell): void;
    clear(): void;
    createCodeCell(): CodeCell;
    execute(force?: boolean): Promise<void>;
    handleEvent(event: Event): void;
    inject(code: string, metadata?: JSONObject): Promise<void>;
  }

  export namespace CodeConsole {
    interface IModelFactory {
      readonly codeCellContentFactory: CodeCellModel.IContentFactory;
      createCodeCell(): ICodeCellModel;
      createRawCell(options: ConstructorParameters<typeof RawCellModel>[0]): IRawCellModel;
    }

    interface IOptions {
      contentFactory: ContentFactory;
      executor: { runCell(options: IRunCellOptions): Promise<boolean> };
      mimeTypeService: IEditorMimeTypeService;
      modelFactory: IModelFactory;
      rendermime: IRenderMimeRegistry;
      sessionContext: ISessionContext;
      translator?: ITranslator;
    }

    class ContentFactory extends Cell.ContentFactory {}
  }
}
