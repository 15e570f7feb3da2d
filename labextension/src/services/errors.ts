import type { IErrorBody } from './protocol';

/** An error the server named: a stable code, a sentence, what to do. */
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
  /** The HTTP status; null when the server was never asked or not reached. */
  readonly status: number | null;
}
