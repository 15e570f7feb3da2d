/** Files that the browser saves. */

/** Time for the browser to begin reading. */
const RELEASE_MS = 60000;

/** Save what is at a URL; `release` is called once the browser has it. */
export function saveUrl(url: string, name: string, release: () => void): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(release, RELEASE_MS);
}

/** Save content of this page. */
export function saveBlob(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  saveUrl(url, name, () => URL.revokeObjectURL(url));
}
