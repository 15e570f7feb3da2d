/** Completes cells that run on ranks with the variables of the first of these ranks, and their attributes. */
import type { CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDistGroups, IDistService } from '../../tokens';
import { hasPlace, IRankPlace, placeOf } from '../../model/targets/cellplace';

/** JupyterLab's own providers have about 500: names of ranks come first. */
const BEFORE_THE_KERNEL = 1000;

export class RankCompleter implements ICompletionProvider {
  constructor(service: Pick<IDistService, 'complete'>, groups: IDistGroups, trans: TranslationBundle) {
    this._service = service;
    this._groups = groups;
    this._trans = trans;
  }

  readonly identifier = 'jupyter-dist:ranks';
  readonly rank = BEFORE_THE_KERNEL;
  readonly renderer = null;

  async isApplicable(context: ICompletionContext): Promise<boolean> {
    return this._place(context) !== null;
  }

  async fetch(
    request: CompletionHandler.IRequest,
    context: ICompletionContext
  ): Promise<CompletionHandler.ICompletionItemsReply> {
    const place = this._place(context);
    if (!place) {
      return { start: request.offset, end: request.offset, items: [] };
    }
    const { text: code, offset } = request;
    const reply = await this._service.complete(place.group, place.rank, { code, cursor_pos: offset });
    const type = this._trans.__('rank %1', place.rank).replace(' ', '\u00a0'); // JupyterLab shows one word
    return {
      start: reply.cursor_start,
      end: reply.cursor_end,
      items: reply.matches.map((label, index) => ({
        label,
        type: [reply.types?.[index], type].filter(Boolean).join('\u00a0\u00b7\u00a0'),
        ...(reply.signatures?.[index] ? { documentation: label + reply.signatures[index] } : {})
      }))
    };
  }

  /**
   * The first rank that the active cell runs on. On a busy machine the context may still have the editor of the cell
   * that was active before, while the request has the text of the active one.
   */
  private _place({ widget }: ICompletionContext): IRankPlace | null {
    if (hasPlace(widget)) {
      return widget.rankPlace;
    }
    if (!(widget instanceof NotebookPanel) || !widget.model) {
      return null;
    }
    return placeOf(this._groups, widget.model, widget.content.activeCell?.model);
  }

  private readonly _service: Pick<IDistService, 'complete'>;
  private readonly _groups: IDistGroups;
  private readonly _trans: TranslationBundle;
}
