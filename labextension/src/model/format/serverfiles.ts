/** Files of the server's host, as JupyterLab opens them: by their path in the folder that it shows. */
import { PageConfig } from '@jupyterlab/coreutils';

const SCHEME = 'file://';

/** The path of a file for JupyterLab; null if it is not in the folder that JupyterLab shows, or that is not known. */
export function pathOnServer(file: string): string | null {
  const uri = PageConfig.getOption('rootUri');
  if (!uri.startsWith(SCHEME)) {
    return null;
  }
  const root = `${decodeURIComponent(uri.slice(SCHEME.length)).replace(/\/+$/, '')}/`;
  return file.startsWith(root) && file.length > root.length ? file.slice(root.length) : null;
}
