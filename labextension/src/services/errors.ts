/** Errors of the server, and where the documentation explains them: one entry for each code. */
import type { IErrorBody } from './protocol';
import { translation } from './translation';

/** An error from the server: a stable code, a sentence and a hint. */
export class DistError extends Error {
  constructor(body: IErrorBody, status: number | null = null) {
    super(body.message);
    this.name = 'DistError';
    this.code = body.code;
    this.hint = body.hint ?? '';
    this.status = status;
  }

  readonly code: string;
  readonly hint: string;
  /** The HTTP status; null if the server was not reached. */
  readonly status: number | null;
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
