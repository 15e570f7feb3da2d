/** Completes cells that run on ranks with the variables of the first of these ranks, and their attributes. */
import type { CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDistGroups, IDistService } from '../../tokens';
import { takesCells } from '../groups/groups';
import { parseRanks } from '../format/ranks';
import { resolveTarget } from './target';

/** JupyterLab's own providers have about 500: names of ranks come first. */
const BEFORE_THE_KERNEL = 1000;

interface IPlace {
  readonly group: string;
  readonly rank: number;
}

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
    const reply = await this._service.complete(place.group, place.rank, request.text, request.offset);
    const type = this._trans.__('rank %1', place.rank).replace(' ', '\u00a0'); // JupyterLab shows one word
    return {
      start: reply.cursor_start,
      end: reply.cursor_end,
      items: reply.matches.map(label => ({ label, type }))
    };
  }

  /** The first rank that the editor's cell runs on. */
  private _place({ widget, editor }: ICompletionContext): IPlace | null {
    if (!(widget instanceof NotebookPanel) || !widget.model) {
      return null;
    }
    const cell = widget.content.widgets.find(cell => cell.editor !== null && cell.editor === editor);
    const target = cell?.model.type === 'code' ? resolveTarget(widget.model, cell.model) : null;
    const group = target && this._groups.find(target.group);
    if (!group || !takesCells(group)) {
      return null;
    }
    try {
      const living = parseRanks(target.ranks, group.world_size).filter(rank => group.ranks[rank].state !== 'dead');
      return living.length > 0 ? { group: group.id, rank: living[0] } : null;
    } catch {
      return null; // the picker shows what is wrong with the expression
    }
  }

  private readonly _service: Pick<IDistService, 'complete'>;
  private readonly _groups: IDistGroups;
  private readonly _trans: TranslationBundle;
}
