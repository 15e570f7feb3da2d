/** Puts one view in the place of equal widgets of all ranks. */
import type { IMimeBundle, IOutput } from '@jupyterlab/nbformat';
import type { ISignal } from '@lumino/signaling';
import { FINAL_STATES } from '../../services/protocol';
import { groupedBy } from '../../model/format/grouped';
import { expandRanks } from '../../model/format/ranks';
import type { ILiveItem, ILiveItems, ILiveOutput } from '../../model/outputs/liveoutputs';

/** Finds the widget that stands for equal ones of ranks. */
export interface ISharedFinder {
  /** Emitted with a group when `findShared` may return something else. */
  readonly sharedChanged: ISignal<unknown, string>;
  /** The widget that stands for these of a group's ranks, which are given by rank; null if they are not equal. */
  findShared(group: string, roots: ReadonlyMap<number, string>): string | null;
}

export const WIDGET_MIME = 'application/vnd.jupyter.widget-view+json';

/** The shared widgets of one output. */
export class SharedViews implements ILiveItems {
  constructor(
    private readonly _widgets: ISharedFinder,
    private readonly _redraw: () => void
  ) {
    _widgets.sharedChanged.connect(this._onChanged, this);
  }

  isDisposed = false;

  dispose(): void {
    this.isDisposed = true;
    this._widgets.sharedChanged.disconnect(this._onChanged, this);
  }

  /** The items to show. While the cell runs, each rank's widgets are shown, because their states differ from moment to moment. */
  apply<T extends ILiveItem>({ group, ranks, state, items }: ILiveOutput<T>): readonly T[] {
    const withWidgets = FINAL_STATES.has(state) ? items.filter(item => widgetOf(item) !== null) : [];
    if (withWidgets.length === 0) {
      return items;
    }
    const members = expandRanks(ranks);
    const byRanks = groupedBy(withWidgets, item => item.ranks);
    const views = members.map(rank => byRanks.get(String(rank)) ?? []);
    const count = members.length > 1 ? Math.min(...views.map(own => own.length)) : 0;
    const replaced = new Map<T, T | null>();
    for (let at = 0; at < count; at++) {
      const equal = views.map(own => own[at]);
      const shared = this._widgets.findShared(group.id, new Map(members.map((rank, i) => [rank, widgetOf(equal[i])!])));
      if (shared !== null) {
        equal.forEach(item => replaced.set(item, null));
        const set = new Set(equal);
        const first = items.find(item => set.has(item))!;
        replaced.set(first, this._shared(first, ranks, shared));
      }
    }
    return replaced.size === 0
      ? items
      : (items.flatMap(item => (replaced.has(item) ? (replaced.get(item) ?? []) : [item])) as T[]);
  }

  /** An item like this one. Its output stays the same object, so that it is not drawn again. */
  private _shared<T extends ILiveItem>(item: T, ranks: string, model_id: string): T {
    let made = this._made.get(model_id);
    if (made?.from !== item.output) {
      const data = item.output!.data as IMimeBundle;
      const view = { ...(data[WIDGET_MIME] as object), model_id };
      made = { from: item.output, output: { ...item.output!, data: { ...data, [WIDGET_MIME]: view } } as IOutput };
      this._made.set(model_id, made);
    }
    return { ...item, key: `shared-${item.key}`, ranks, output: made!.output };
  }

  private _onChanged(): void {
    this._redraw();
  }

  private _made = new Map<string, { from: IOutput | undefined; output: IOutput }>();
}

/** The id of the widget that an item shows. */
function widgetOf({ output }: ILiveItem): string | null {
  const view = (output?.data as IMimeBundle | undefined)?.[WIDGET_MIME] as { model_id?: unknown } | undefined;
  return typeof view?.model_id === 'string' ? view.model_id : null;
}
