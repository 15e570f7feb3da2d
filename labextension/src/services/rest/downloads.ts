/** Downloads by the browser, with or without its cookie. */
import { ServerConnection } from '@jupyterlab/services';
import { DistError } from '../errors';
import { ANSWER_SECONDS } from './api';
import { errorBody } from './answers';
import { limited } from './limits';
import { apiUrl, stoppedBy } from './requests';

type Settings = ServerConnection.ISettings;

/** How long to wait for whether the cookie is enough; the token is, too. */
const COOKIE_SECONDS = 10;

/** Something to download; release it when the browser has it. */
export interface IDownload {
  readonly url: string;
  release(): void;
}

/**
 * A URL from which the browser can download what is at one of ours, with its cookie. If the page has none, because
 * another server delivered it, it is fetched with the token in a header, and kept in memory until released.
 */
export async function download(settings: Settings, group: string, url: string): Promise<IDownload> {
  if (await hasCookie(settings, group)) {
    return { url, release: () => undefined };
  }
  const response = await limited(ANSWER_SECONDS, signal =>
    ServerConnection.makeRequest(url, { method: 'GET' }, stoppedBy(signal, settings))
  );
  if (!response.ok) {
    throw new DistError(errorBody(response, await (await content(response)).text()), response.status);
  }
  const object = URL.createObjectURL(await content(response));
  return { url: object, release: () => URL.revokeObjectURL(object) };
}

/** The whole answer, however large: only without any of it for a time it is given up. */
async function content(response: Response): Promise<Blob> {
  const reader = response.body?.getReader();
  const parts: BlobPart[] = [];
  while (reader) {
    const { done, value } = await limited(ANSWER_SECONDS, signal => {
      signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined));
      return reader.read();
    });
    if (done) {
      break;
    }
    parts.push(value);
  }
  return new Blob(parts, { type: response.headers.get('Content-Type') ?? '' });
}

/** Whether the server knows the browser by its cookie alone. */
async function hasCookie(settings: Settings, group: string): Promise<boolean> {
  try {
    const url = apiUrl(settings, 'groups', group);
    const response = await limited(COOKIE_SECONDS, signal =>
      fetch(url, { credentials: 'same-origin', redirect: 'manual', signal })
    );
    return response.ok;
  } catch {
    // Another origin, which requires the token.
    return false;
  }
}
