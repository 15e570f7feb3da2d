/** The note below a cell whose group the server is about to start. */
import type { TranslationBundle } from '@jupyterlab/translation';

export function startNote(trans: TranslationBundle): HTMLElement {
  const node = document.createElement('div');
  node.className = 'jpd-StartNote';
  node.setAttribute('role', 'status');
  node.textContent = trans.__(
    'Waiting for the ranks to start. The first start in an environment imports torch, which takes some seconds.'
  );
  return node;
}
