/** The note below a cell whose group the server is about to start. */
import type { TranslationBundle } from '@jupyterlab/translation';

export class StartNote {
  constructor(trans: TranslationBundle, group: string) {
    this.node.className = 'jpd-StartNote';
    this.node.setAttribute('role', 'status');
    this.node.textContent = trans.__(
      'Waiting for group %1 to start. The first start in an environment imports torch, which takes some seconds.',
      group
    );
  }

  readonly node = document.createElement('div');

  dispose(): void {
    this.node.remove();
  }
}
