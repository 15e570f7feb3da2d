/** Sources of Contextual Help that ask ranks, loaded when a notebook or console on ranks has the focus. */
import type { MainAreaWidget } from '@jupyterlab/apputils';
import type { CodeCell } from '@jupyterlab/cells';
import type { CodeConsole } from '@jupyterlab/console';
import type { IInspectionRequest, InspectionHandler } from '@jupyterlab/inspector';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { IHasPlace, IRankPlace, placeOf } from '../../model/targets/cellplace';
import type { IDistGroups, IDistService } from '../../tokens';
import { inspectingKernel } from './rankanswer';

type Handler = typeof InspectionHandler;

/** A code console whose cells run on ranks. */
export type RankConsole = MainAreaWidget<CodeConsole> & IHasPlace;

export class HelpSources {
  constructor(
    private readonly _handler: Handler,
    private readonly _service: IDistService,
    private readonly _groups: IDistGroups
  ) {}

  ofNotebook(panel: NotebookPanel): ISource {
    const { content, sessionContext } = panel;
    const place = (): IRankPlace | null =>
      panel.isDisposed ? null : placeOf(this._groups, content.model, content.activeCell?.model);
    const kernel = (): Kernel | null => sessionContext.session?.kernel ?? null;
    const source = this._source(content.rendermime, place, kernel);
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

  ofConsole(panel: RankConsole): ISource {
    const { content } = panel;
    const source = this._source(
      content.rendermime,
      () => (panel.isDisposed ? null : panel.rankPlace),
      () => null
    );
    const follow = (_: unknown, cell: CodeCell | null): void => {
      source.handler.editor = cell?.editor ?? null;
    };
    content.promptCellCreated.connect(follow);
    follow(content, content.promptCell);
    return source;
  }

  private _source(
    rendermime: NotebookPanel['content']['rendermime'],
    place: () => IRankPlace | null,
    kernel: () => Kernel | null
  ): ISource {
    const connector = new RankConnector(this._service, place, kernel);
    return { connector, handler: new this._handler({ connector, rendermime }) };
  }
}

export interface ISource {
  connector: RankConnector;
  handler: InspectionHandler;
}

type Kernel = Pick<ReturnType<typeof inspectingKernel>, 'requestInspect'>;

/** Asks the rank; the kernel if the cell runs there. */
class RankConnector {
  constructor(
    private readonly _service: IDistService,
    private readonly _place: () => IRankPlace | null,
    private readonly _kernel: () => Kernel | null
  ) {}

  /** Whether the rank ran a cell when it answered last. */
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
