import type { IErrorBody } from './protocol';

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
