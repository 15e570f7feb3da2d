/**
 * The files that stand for cells have the same names on all ranks, but other machines keep them in other folders.
 * JupyterLab knows one folder: replies name the folder of the first rank that answered, and each rank opens its own file
 * of that name.
 */
import type { IDebugReply } from '../../services/protocol';

type ReplyContent = IDebugReply['content'];

export class CellFiles {
  /** The reply with the cells' files where JupyterLab looks for them. Replies to `debugInfo` contain a rank's folder. */
  read(reply: IDebugReply): IDebugReply {
    const body = reply.content.body as ReplyContent | undefined;
    if (typeof body?.tmpFilePrefix === 'string' && body.tmpFilePrefix !== '') {
      this._shown ??= body.tmpFilePrefix;
      this._prefixes.set(reply.rank, body.tmpFilePrefix);
    }
    const own = this._prefixes.get(reply.rank);
    if (!body || !own || !this._shown || own === this._shown) {
      return reply;
    }
    return { ...reply, content: { ...reply.content, body: moved(body, own, this._shown) } };
  }

  private readonly _prefixes = new Map<number, string>();
  /** What JupyterLab knows. */
  private _shown: string | null = null;
}

/** The body of a reply with other paths for the files in a folder. */
function moved(body: ReplyContent, from: string, to: string): ReplyContent {
  const path = (value: unknown): unknown =>
    typeof value === 'string' && value.startsWith(from) ? to + value.slice(from.length) : value;
  // A source is a path in replies to `debugInfo`, and has one in all others.
  const source = (value: unknown): unknown =>
    typeof value === 'object' && value !== null
      ? { ...value, path: path((value as { path?: unknown }).path) }
      : path(value);
  const result = { ...body };
  for (const name of ['tmpFilePrefix', 'sourcePath'].filter(each => each in body)) {
    result[name] = path(body[name]);
  }
  for (const name of ['breakpoints', 'stackFrames'].filter(each => Array.isArray(body[each]))) {
    result[name] = (body[name] as { source?: unknown }[]).map(each => ({ ...each, source: source(each.source) }));
  }
  return result;
}

/** A function that has not begun is at line 0, which no editor has. */
export function fromLineOne(reply: IDebugReply): IDebugReply {
  const body = reply.content.body as { stackFrames?: { line: number }[] } | undefined;
  if (!body?.stackFrames?.some(({ line }) => line < 1)) {
    return reply;
  }
  const stackFrames = body.stackFrames.map(frame => ({ ...frame, line: Math.max(1, frame.line) }));
  return { ...reply, content: { ...reply.content, body: { ...body, stackFrames } } };
}
