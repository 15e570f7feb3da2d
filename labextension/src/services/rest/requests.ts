/** Requests to the REST API: each is answered, or rejects with a DistError. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import { DistError } from '../errors';
import { translation } from '../translation';
import { errorBody, parseAnswer, unanswered } from './answers';
import { ANSWER_SECONDS, type IApiRequest, type IRetries } from './api';
import { limited } from './limits';

type Settings = ServerConnection.ISettings;

/** Errors after which it is unknown whether a request was carried out. */
const LOST_ANSWERS = ['server_unreachable', 'timed_out'];
const MIN_ATTEMPTS = 3;
const RETRY_MS = 500;
const MAX_RETRY_MS = 5000;
/** How long a change is asked for whose answer was lost. */
const RETRY_FOR_MS = 2000;
/** As long as a server takes to restart: a cell that has reached its ranks runs, whatever the page shows. */
export const RETRY_CELL_FOR_MS = 30000;

/** The URL of a route below the API's root. */
export function apiUrl(settings: Settings, ...parts: (string | number)[]): string {
  return URLExt.join(settings.baseUrl, 'jupyter-dist', 'api', ...parts.map(part => segment(String(part))));
}

/** One segment of a path, and never "..", even from an untrusted id. */
function segment(part: string): string {
  if (part === '' || part === '.' || part === '..') {
    const trans = translation();
    throw new DistError({
      code: 'bad_request',
      message: trans.__("'%1' is not a valid id.", part),
      hint: ''
    });
  }
  return encodeURIComponent(part);
}

/** Make a request; a change with a key is retried if its answer is lost. */
export function ask<T>(settings: Settings, request: IApiRequest, retries?: IRetries): Promise<T> {
  return request.isKeyed
    ? askOnce(settings, request, retries ?? { key: UUID.uuid4(), forMs: RETRY_FOR_MS, isUnanswered: false })
    : send(settings, request);
}

/**
 * Make a change, and retry if the answer is lost: the server recognizes the key and does not repeat the change. Its
 * answer to a later attempt need not be true of the attempt whose answer was lost.
 */
async function askOnce<T>(
  settings: Settings,
  request: IApiRequest,
  { key, forMs, isUnanswered }: IRetries
): Promise<T> {
  const until = performance.now() + forMs;
  let pause = RETRY_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(settings, request, key);
    } catch (reason) {
      const lost = reason instanceof DistError && LOST_ANSWERS.includes(reason.code);
      isUnanswered ||= lost;
      if (!lost || (attempt >= MIN_ATTEMPTS && performance.now() + pause > until)) {
        throw isUnanswered ? unanswered(reason) : reason;
      }
      await new Promise(resolve => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, MAX_RETRY_MS);
    }
  }
}

async function send<T>(settings: Settings, request: IApiRequest, key?: string): Promise<T> {
  const { verb, path, query, body } = request;
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  const search = given.length > 0 ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : '';
  const init: RequestInit = { method: verb };
  if (key) {
    init.headers = { 'Idempotency-Key': key };
  }
  if (body) {
    init.body = JSON.stringify(body);
  }
  const url = apiUrl(settings, ...path) + search;
  const { response, text } = await limited(limitOf(request), async signal => {
    const response = await ServerConnection.makeRequest(url, init, stoppedBy(signal, settings));
    return { response, text: await response.text() };
  });
  if (!response.ok) {
    throw new DistError(errorBody(response, text), response.status);
  }
  return parseAnswer<T>(text, response.status);
}

/** How long the answer may take, in seconds. */
function limitOf({ answerSeconds = ANSWER_SECONDS, query }: IApiRequest): number {
  return answerSeconds + (Number((query as { wait?: number } | undefined)?.wait) || 0);
}

/** Settings whose requests end with the signal. */
export function stoppedBy(signal: AbortSignal, settings: Settings): Settings {
  return { ...settings, fetch: input => settings.fetch.call(null, input, { signal }) };
}
