/** In a narrow window, or at 200 % zoom, both sidebars would leave no room for the notebook between them: one folds. */
import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
import { MessageLoop } from '@lumino/messaging';
import type { Widget } from '@lumino/widgets';

/** Of what is between the sidebars, in pixels. */
const MIN_WIDTH = 240;

export function keepRoom(shell: JupyterFrontEnd.IShell, sidebar: Widget): void {
  const lab = shell as Partial<ILabShell> & JupyterFrontEnd.IShell;
  if (!lab.collapseLeft || !lab.collapseRight) {
    return; // Notebook 7 has another shell
  }
  let hadLeft = !lab.leftCollapsed;
  const look = (): void => {
    const hasLeft = !lab.leftCollapsed;
    const between = document.getElementById('jp-main-dock-panel')?.offsetWidth ?? MIN_WIDTH;
    if (sidebar.isVisible && hasLeft && between < MIN_WIDTH) {
      // What was opened last stays.
      (hadLeft ? lab.collapseLeft! : lab.collapseRight!).call(lab);
    }
    hadLeft = !lab.leftCollapsed;
  };
  MessageLoop.installMessageHook(sidebar, (_, { type }) => {
    if (type === 'after-show' || type === 'resize') {
      requestAnimationFrame(look);
    }
    return true;
  });
  lab.layoutModified?.connect(look);
}
