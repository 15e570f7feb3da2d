/** Charts draw on a canvas, which does not follow JupyterLab's theme by itself. */
import { IDisposable, DisposableDelegate } from '@lumino/disposable';

/** Call `redraw` after each change of the theme, until disposed. */
export function onThemeChange(redraw: () => void): IDisposable {
  const observer = new MutationObserver(redraw);
  observer.observe(document.body, { attributes: true, attributeFilter: ['data-jp-theme-name'] });
  return new DisposableDelegate(() => observer.disconnect());
}
