/** Downloads by the browser, with or without its cookie. */
import { ServerConnection } from '@jupyterlab/services';
import { DistError } from '../errors';
import { errorBody } from './answers';
import { apiUrl } from './requests';

type Settings = ServerConnection.ISettings;

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
