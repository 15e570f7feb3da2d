/**
 * The REST API, one function per route. Used inside services only; the rest
 * of the extension sees DistService.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import { errorBody, parseAnswer, unanswered, unreachable } from './answers';
import { DistError } from '../errors';
import type {
  ICommRequest,
  ICommTaken,
  IComparison,
  ICompletion,
  IDevices,
  IDrift,
  IEnvironment,
  IExecution,
  IGroup,
  IHistory,
  IInputAnswered,
  IInputRequest,
  IDebugReplies,
  IDebugRequest,
  IInspectRequest,
  IInspection,
  ILaunchers,
  ILogPage,
  IMemorySample,
  IPastSamples,
  IRunRequest,
  IScript,
  IScriptRequest,
  IStacks,
  IStartRequest,
  IVariables,
  IView
} from '../protocol';
import { translation } from '../translation';

type Settings = ServerConnection.ISettings;

/** Errors after which it is unknown whether a request was carried out. */
const LOST_ANSWERS = ['server_unreachable', 'timed_out'];
const MIN_ATTEMPTS = 3;
const RETRY_MS = 500;
const MAX_RETRY_MS = 5000;
/** How long a change is asked for whose answer was lost. */
const RETRY_FOR_MS = 2000;
/** As long as a server takes to restart: a cell that has reached its ranks runs, whatever the page says of it. */
const RETRY_CELL_FOR_MS = 30000;

/** Something to download; release it when the browser has it. */
export interface IDownload {
  readonly url: string;
  release(): void;
}

/** The URL of a route below the API's root. */
export function apiUrl(settings: Settings, ...parts: string[]): string {
  return URLExt.join(settings.baseUrl, 'jupyter-dist', 'api', ...parts.map(segment));
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

export async function listEnvironments(
  settings: Settings
): Promise<{ environments: IEnvironment[]; default: string | null }> {
  return request(settings, 'GET', ['environments']);
}

export async function warmEnvironment(settings: Settings, name: string): Promise<void> {
  await request(settings, 'POST', ['environments', name, 'warm'], {});
}

export async function listLaunchers(settings: Settings): Promise<ILaunchers> {
  return request(settings, 'GET', ['launchers']);
}

export async function listDevices(settings: Settings): Promise<IDevices> {
  return request(settings, 'GET', ['devices']);
}

export async function listGroups(settings: Settings): Promise<{ groups: IGroup[] }> {
  return request(settings, 'GET', ['groups']);
}

export async function startGroup(settings: Settings, body: IStartRequest): Promise<IGroup> {
  return requestOnce(settings, ['groups'], body);
}

export async function getGroup(settings: Settings, group: string): Promise<IGroup> {
  return request(settings, 'GET', ['groups', group]);
}

export async function shutdownGroup(settings: Settings, group: string): Promise<void> {
  await request(settings, 'DELETE', ['groups', group]);
}

export async function interruptGroup(
  settings: Settings,
  group: string,
  ranks: string
): Promise<{ interrupted: string; idle: string }> {
  return request(settings, 'POST', ['groups', group, 'interrupt'], { ranks });
}

export async function restartGroup(settings: Settings, group: string): Promise<IGroup> {
  return requestOnce(settings, ['groups', group, 'restart'], {});
}

export async function replaceRanks(settings: Settings, group: string): Promise<IGroup> {
  return requestOnce(settings, ['groups', group, 'replace'], {});
}

export async function killRank(settings: Settings, group: string, rank: number): Promise<IGroup> {
  return requestOnce(settings, ['groups', group, 'ranks', String(rank), 'kill'], {});
}

export async function complete(
  settings: Settings,
  group: string,
  rank: number,
  code: string,
  cursorPos: number
): Promise<ICompletion> {
  const body = { code, cursor_pos: cursorPos };
  return request(settings, 'POST', ['groups', group, 'ranks', String(rank), 'complete'], body);
}

export async function inspect(
  settings: Settings,
  group: string,
  rank: number,
  body: IInspectRequest
): Promise<IInspection> {
  return request(settings, 'POST', ['groups', group, 'ranks', String(rank), 'inspect'], body);
}

/** The answer may take as long as an import, or until something happens. */
export async function debug(settings: Settings, group: string, body: IDebugRequest): Promise<IDebugReplies> {
  return request(settings, 'POST', ['groups', group, 'debug'], body);
}

export async function reformGroup(settings: Settings, group: string): Promise<IGroup> {
  return requestOnce(settings, ['groups', group, 'reform'], {});
}

export async function emptyCache(
  settings: Settings,
  group: string,
  ranks: string
): Promise<{ freed_bytes: Record<string, number> }> {
  return request(settings, 'POST', ['groups', group, 'empty-cache'], { ranks });
}

export async function listMemory(settings: Settings, group: string): Promise<{ samples: IMemorySample[] }> {
  return request(settings, 'GET', ['groups', group, 'memory']);
}

/** A page of the last hour's samples, after a time. */
export async function listSamples(settings: Settings, group: string, since: number): Promise<IPastSamples> {
  const query = new URLSearchParams({ since: String(since) });
  return request(settings, 'GET', ['groups', group, 'samples'], undefined, query);
}

/** `isUnanswered`: whether the cell was sent before, with the same key. */
export async function runExecution(
  settings: Settings,
  group: string,
  body: IRunRequest,
  key: string,
  isUnanswered: boolean
): Promise<IExecution> {
  return requestOnce(settings, ['groups', group, 'executions'], body, { key, forMs: RETRY_CELL_FOR_MS, isUnanswered });
}

export async function listExecutions(settings: Settings, group: string): Promise<{ executions: IExecution[] }> {
  return request(settings, 'GET', ['groups', group, 'executions']);
}

export async function getHistory(settings: Settings, group: string): Promise<IHistory> {
  return request(settings, 'GET', ['groups', group, 'history']);
}

export async function getView(settings: Settings, group: string, execution: string): Promise<IView> {
  return request(settings, 'GET', ['groups', group, 'executions', execution]);
}

export async function exportScript(settings: Settings, group: string, body: IScriptRequest): Promise<IScript> {
  return request(settings, 'POST', ['groups', group, 'script'], body);
}

export async function extendExecution(
  settings: Settings,
  group: string,
  execution: string,
  ranks: string
): Promise<IExecution> {
  return request(settings, 'POST', ['groups', group, 'executions', execution, 'extend'], { ranks });
}

export async function listStacks(settings: Settings, group: string): Promise<IStacks> {
  return request(settings, 'GET', ['groups', group, 'stacks']);
}

export async function getDrift(settings: Settings, group: string): Promise<IDrift> {
  return request(settings, 'GET', ['groups', group, 'drift']);
}

export async function listVariables(settings: Settings, group: string): Promise<IVariables> {
  return request(settings, 'GET', ['groups', group, 'variables']);
}

export async function compare(settings: Settings, group: string, name: string): Promise<IComparison> {
  return request(settings, 'POST', ['groups', group, 'compare'], { name });
}

export async function cancelExecution(settings: Settings, group: string, execution: string): Promise<void> {
  await request(settings, 'DELETE', ['groups', group, 'executions', execution]);
}

export async function answerInput(
  settings: Settings,
  group: string,
  execution: string,
  body: IInputRequest
): Promise<IInputAnswered> {
  return request(settings, 'POST', ['groups', group, 'executions', execution, 'input'], body);
}

export async function sendComm(
  settings: Settings,
  group: string,
  rank: number,
  body: ICommRequest
): Promise<ICommTaken> {
  return request(settings, 'POST', ['groups', group, 'ranks', String(rank), 'comms'], body);
}

export async function getLog(
  settings: Settings,
  group: string,
  rank: number,
  page: { tail_bytes?: number; before?: number }
): Promise<ILogPage> {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(page)) {
    query.set(key, String(value));
  }
  const path = ['groups', group, 'ranks', String(rank), 'log'];
  return request(settings, 'GET', path, undefined, query);
}

/** The URL of a rank's full log. Without a token, because URLs end up in histories and logs of proxies. */
export function logDownloadUrl(settings: Settings, group: string, rank: number): string {
  return apiUrl(settings, 'groups', group, 'ranks', String(rank), 'log', 'download');
}

/**
 * A URL from which the browser can download what is at one of ours, with its cookie. If the page has none, because
 * another server delivered it, it is fetched with the token in a header, and kept in memory until released.
 */
export async function download(settings: Settings, group: string, url: string): Promise<IDownload> {
  if (await hasCookie(settings, group)) {
    return { url, release: () => undefined };
  }
  const response = await ServerConnection.makeRequest(url, { method: 'GET' }, settings);
  if (!response.ok) {
    throw new DistError(errorBody(response, await response.text()), response.status);
  }
  const object = URL.createObjectURL(await response.blob());
  return { url: object, release: () => URL.revokeObjectURL(object) };
}

/** Whether the server knows the browser by its cookie alone. */
async function hasCookie(settings: Settings, group: string): Promise<boolean> {
  try {
    const url = apiUrl(settings, 'groups', group);
    const response = await fetch(url, { credentials: 'same-origin', redirect: 'manual' });
    return response.ok;
  } catch {
    // Another origin, which requires the token.
    return false;
  }
}

interface IOnce {
  key: string;
  forMs: number;
  /** Whether it was sent before, with the same key, and not answered. */
  isUnanswered: boolean;
}

/**
 * POST a change, and retry if the answer is lost: the server recognizes the
 * key and does not repeat the change. What it says to a later attempt need not be true of the one whose answer was lost.
 */
async function requestOnce<T>(
  settings: Settings,
  path: string[],
  body: object,
  { key, forMs, isUnanswered }: IOnce = { key: UUID.uuid4(), forMs: RETRY_FOR_MS, isUnanswered: false }
): Promise<T> {
  const until = performance.now() + forMs;
  let pause = RETRY_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await request(settings, 'POST', path, body, undefined, key);
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

async function request<T>(
  settings: Settings,
  method: 'GET' | 'POST' | 'DELETE',
  path: string[],
  body?: object,
  query?: URLSearchParams,
  key?: string
): Promise<T> {
  const url = apiUrl(settings, ...path) + (query ? `?${query}` : '');
  const init: RequestInit = { method };
  if (key) {
    init.headers = { 'Idempotency-Key': key };
  }
  if (body) {
    init.body = JSON.stringify(body);
  }
  let response: Response;
  let text: string;
  try {
    response = await ServerConnection.makeRequest(url, init, settings);
    text = await response.text();
  } catch {
    throw new DistError(unreachable(translation().__('The Jupyter server did not answer.')));
  }
  if (!response.ok) {
    throw new DistError(errorBody(response, text), response.status);
  }
  return parseAnswer<T>(text, response.status);
}
