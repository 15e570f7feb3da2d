/** Reads the answers to requests, which may come from a proxy in between. */
import { DistError, isPassing } from '../errors';
import type { IErrorBody } from '../protocol';
import { translation } from '../translation';

/** A proxy's words for a server that it does not reach, or that took longer than it waits. */
const GATEWAY_STATUSES = [502, 503, 504];
/** The server's words for an address that it does not have (server/http/base.py). */
const NOTHING_HERE = 'There is nothing here.';

/** What the server answered; undefined if that is nothing. Throws a DistError if another program answered. */
export function parseAnswer<T>(text: string, status: number): T {
  try {
    return (text ? JSON.parse(text) : undefined) as T;
  } catch {
    const trans = translation();
    const error = {
      code: 'bad_response',
      message: trans.__('The answer could not be read: a proxy may have sent a page to log in.'),
      hint: trans.__('Log in again in another tab, or save your work and reload the page.')
    };
    throw new DistError(error, status);
  }
}

/** The server's error, or a generic one if it sent none. */
export function errorBody(response: Response, text: string): IErrorBody {
  try {
    const { error } = JSON.parse(text) as { error?: IErrorBody };
    if (error?.message === NOTHING_HERE) {
      return unknownRequest(error);
    }
    if (error?.code && error.message) {
      return error;
    }
  } catch {
    // Not ours: a proxy's page, or a server without the extension.
  }
  const trans = translation();
  const message = trans.__('The server returned %1 %2.', response.status, response.statusText);
  if (GATEWAY_STATUSES.includes(response.status)) {
    return unreachable(message);
  }
  const missing = response.status === 404;
  return {
    code: missing ? 'not_found' : 'bad_response',
    message,
    hint: missing ? trans.__('Check that the server extension is enabled: jupyter server extension list.') : ''
  };
}

/** A server that runs since before an upgrade does not have what the page asks for. */
function unknownRequest({ code }: IErrorBody): IErrorBody {
  const trans = translation();
  return {
    code,
    message: trans.__('The server does not have what this page asks for.'),
    hint: trans.__(
      'It may run an earlier version of jupyter_dist: restart the Jupyter server. Its groups keep running.'
    )
  };
}

/** The error of a change that may be made all the same, because the answer to an earlier request for it was lost. */
export function unanswered(reason: unknown): unknown {
  if (!(reason instanceof DistError)) {
    return reason;
  }
  const { code, message, status } = reason;
  // The server's hint promises that nothing changes, which may be wrong here.
  const hint = isPassing(reason)
    ? translation().__('It may be done when the agent responds: look before you repeat it.')
    : reason.hint;
  return new DistError({ code, message, hint }, status, true);
}

export function unreachable(message: string): IErrorBody {
  const hint = translation().__('Check that it is still running and that the network is up.');
  return { code: 'server_unreachable', message, hint };
}
