/** The note below a cell whose group the server is about to start. */
import type { TranslationBundle } from '@jupyterlab/translation';

export function startNote(trans: TranslationBundle, group: string): HTMLElement {
  const node = document.createElement('div');
  node.className = 'jpd-StartNote';
  node.setAttribute('role', 'status');
  node.textContent = trans.__(
    'Waiting for group %1 to start. The first start in an environment imports torch, which takes some seconds.',
    group
  );
  return node;
}
