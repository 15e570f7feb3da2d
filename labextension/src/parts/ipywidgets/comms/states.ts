/** The states of widgets as their ranks send them, and whether widgets of several ranks are equal apart from their ids. */
import type { ICommNews, ICommState } from '../../../services/protocol';

/** How ipywidgets names another widget in a state. */
const REFERENCE = 'IPY_MODEL_';
/** Fields about where a widget is shown, which do not change its content. */
const IGNORED = new Set(['_view_count', 'msg_id']);
/** Larger ones are shown for each rank: comparing them would cost more than it saves. */
const MAX_CHARS = 1 << 18;

/** A widget and all that it refers to. */
export interface IWidgetTree {
  /** In an order that is the same for equal ones. */
  ids: string[];
  /** The same for equal ones. */
  shape: string;
}

interface IKept {
  state: Record<string, unknown>;
  hasBuffers: boolean;
}

export class WidgetStates {
  /** Take all open comms: others are closed. */
  reset(comms: readonly ICommState[]): void {
    this._kept.clear();
    comms.filter(comm => comm.live && comm.is_kept).forEach(comm => this.open(comm));
  }

  open({ comm_id: id, data, buffers }: Pick<ICommNews, 'comm_id' | 'data' | 'buffers'>): void {
    const state = { ...(data?.state as object | undefined) };
    this._kept.set(id!, { state, hasBuffers: (buffers?.length ?? 0) > 0 });
  }

  say({ comm_id: id, data, buffers }: Pick<ICommNews, 'comm_id' | 'data' | 'buffers'>): void {
    const kept = this._kept.get(id!);
    if (kept && (data?.method === 'update' || data?.method === 'echo_update')) {
      Object.assign(kept.state, data.state);
      kept.hasBuffers ||= (buffers?.length ?? 0) > 0;
    }
  }

  close(id: string): void {
    this._kept.delete(id);
  }

  stateOf(id: string): Record<string, unknown> {
    return this._kept.get(id)?.state ?? {};
  }

  /** Null if a part is not known, has binary data, or is large; and if a link in the page changes it. */
  treeOf(root: string): IWidgetTree | null {
    const ids = [root];
    const numberOf = (id: string): number => (ids.includes(id) ? ids.indexOf(id) : ids.push(id) - 1);
    const named = (_: string, value: unknown): unknown =>
      isReference(value) ? `${REFERENCE}${numberOf(idOf(value))}` : value;
    let shape = '';
    for (let at = 0; at < ids.length; at++) {
      const kept = this._kept.get(ids[at]);
      if (!kept || kept.hasBuffers) {
        return null;
      }
      const keys = Object.keys(kept.state).filter(key => !IGNORED.has(key));
      shape += JSON.stringify(
        keys.sort().map(key => [key, kept.state[key]]),
        named
      );
      if (shape.length > MAX_CHARS) {
        return null;
      }
    }
    return this._isLinked(ids) ? null : { ids, shape };
  }

  /** Such a link (`jslink`) is a widget that nothing refers to. */
  private _isLinked(ids: readonly string[]): boolean {
    const links = [...this._kept.values()].filter(({ state }) => String(state._model_name).endsWith('LinkModel'));
    return links.some(({ state: { source, target } }) => {
      const ends = [source, target].flat().filter(isReference).map(idOf);
      return ends.some(end => ids.includes(end));
    });
  }

  private _kept = new Map<string, IKept>();
}

/** A state, or a message, with other ids in its references. */
export function renamed<T>(value: T, nameOf: (id: string) => string): T {
  const rename = (part: unknown): unknown => {
    if (isReference(part)) {
      return `${REFERENCE}${nameOf(idOf(part))}`;
    }
    if (Array.isArray(part)) {
      return part.map(rename);
    }
    const isPlain = part !== null && typeof part === 'object' && Object.getPrototypeOf(part) === Object.prototype;
    return isPlain ? Object.fromEntries(Object.entries(part).map(([key, each]) => [key, rename(each)])) : part;
  };
  return rename(value) as T;
}

function isReference(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(REFERENCE);
}

function idOf(reference: string): string {
  return reference.slice(REFERENCE.length);
}
