/** Errors of the server, and where the documentation explains them: one entry for each code. */
import type { IErrorBody } from './protocol';
import { translation } from './translation';
import { inWords } from './words';

/** An error from the server: a stable code, a sentence and a hint. */
export class DistError extends Error {
  constructor(body: IErrorBody, status: number | null = null, isUnanswered = false) {
    super(localized(body).message);
    this.name = 'DistError';
    this.code = body.code;
    this.hint = localized(body).hint;
    this.status = status;
    this.isUnanswered = isUnanswered;
  }

  readonly code: string;
  readonly hint: string;
  /** The HTTP status; null if the server was not reached. */
  readonly status: number | null;
  /** Whether the answer to an earlier request for the same change was lost: it may be made all the same. */
  readonly isUnanswered: boolean;
}

/** An error in the page's language. */
export function localized({ code, message, message_words, hint, hint_words }: IErrorBody): IErrorBody {
  const trans = translation();
  return { code, message: inWords(trans, message, message_words), hint: inWords(trans, hint ?? '', hint_words) };
}

/** The error to show for any failure. */
export function errorOf(reason: unknown): IErrorBody {
  if (reason instanceof DistError) {
    return { code: reason.code, message: reason.message, hint: reason.hint };
  }
  return { code: 'internal', message: String(reason), hint: '' };
}

/** Errors of a subscription that are still there when the server is asked again. */
const LASTING: ReadonlySet<string> = new Set([
  'bad_request',
  'forbidden',
  'too_large',
  'unknown_execution',
  'unknown_group',
  'unknown_rank'
]);

/** Errors that pass: the agent of the group is busy or stopped, and its ranks keep running. */
const PASSING: ReadonlySet<string> = new Set(['timed_out', 'agent_unreachable']);

/** Whether it is no use to ask again. */
export function isLasting({ code }: Pick<IErrorBody, 'code'>): boolean {
  return LASTING.has(code);
}

/** Whether what was asked for is still there, and is answered later. */
export function isPassing({ code }: Pick<IErrorBody, 'code'>): boolean {
  return PASSING.has(code);
}

/** Wait for a part of the extension that is loaded when it is first used. Rejects with a DistError. */
export async function loaded<T>(part: Promise<T>): Promise<T> {
  try {
    return await part;
  } catch (reason) {
    console.error('jupyter_dist: a part of the page could not be loaded', reason);
    const trans = translation();
    throw new DistError({
      code: 'extension_failed',
      message: trans.__('A part of jupyter_dist could not be loaded.'),
      hint: trans.__(
        'Save your work and reload the page: the server may be down, or another version installed since it was opened.'
      )
    });
  }
}

/** How long to wait after the first failure, and at most. */
const RETRY_MS = 1000;
const MAX_RETRY_MS = 30000;

/** A part that no click asks for again: it is loaded when the server is back. `failed` gets the error of each try. */
export async function loadedAtLast<T>(
  load: () => Promise<T>,
  failed: (reason: DistError) => void = () => undefined
): Promise<T> {
  for (let wait = RETRY_MS; ; wait = Math.min(2 * wait, MAX_RETRY_MS)) {
    try {
      return await loaded(load());
    } catch (reason) {
      failed(reason as DistError);
      await timeOrNetwork(wait);
    }
  }
}

/** Wait for some milliseconds, or until the browser has its network again. */
async function timeOrNetwork(milliseconds: number): Promise<void> {
  let timer: number | undefined;
  const waited = new AbortController();
  await new Promise<void>(resolve => {
    timer = window.setTimeout(resolve, milliseconds);
    window.addEventListener('online', () => resolve(), { signal: waited.signal });
  });
  window.clearTimeout(timer);
  waited.abort();
}

/** The documentation's address; a test compares it with package.json. */
const DOCUMENTATION = 'https://jupyter-dist.readthedocs.io/en/latest/';

/** The entry for an error code. A code from a notebook's file can be any text: it never leaves the fragment. */
export function helpUrl(code: string): string {
  return `${DOCUMENTATION}troubleshooting.html#${encodeURIComponent(code)}`;
}

/** What a link to the entry looks like, wherever it is shown. */
export function helpLink({ code }: Pick<IErrorBody, 'code'>): { href: string; text: string; label: string } {
  const trans = translation();
  return { href: helpUrl(code), text: trans.__('Help'), label: trans.__('Help for the error %1', code) };
}

/** Open the entry in a new tab. */
export function openHelp({ code }: Pick<IErrorBody, 'code'>): void {
  window.open(helpUrl(code), '_blank', 'noopener');
}
