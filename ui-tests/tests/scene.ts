/** What a page shows when a test fails on it: what lies over the notebook is in no message of a click that waits for it. */
import { Page } from '@playwright/test';

/** How long a page may take to answer that no longer does. */
const LIMIT_MS = 10000;

/** Describe the page in a line for each thing: its notebooks, dialogs, notifications, and what is over the editors. */
export async function scene(page: Page): Promise<string[]> {
  const late = new Promise<string[]>(resolve => setTimeout(resolve, LIMIT_MS, ['does not answer']));
  const lines = await Promise.race([look(page), late]).catch(error => [`is not there: ${error}`]);
  return lines.map(line => `The page: ${line}`);
}

function look(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const words = (node: Element): string => (node.textContent ?? '').trim().replace(/\s+/g, ' ').slice(0, 120);
    const name = (node: Element): string => `${node.tagName.toLowerCase()}.${[...node.classList].join('.')}`;
    const isShown = (node: Element): boolean => node.getClientRects().length > 0;
    const lines: string[] = [`address ${location.pathname}, focus ${name(document.activeElement ?? document.body)}`];
    for (const tab of document.querySelectorAll('#jp-main-dock-panel .lm-TabBar-tab')) {
      lines.push(`tab ${tab.classList.contains('lm-mod-current') ? 'shown' : 'hidden'}: ${words(tab)}`);
    }
    for (const panel of document.querySelectorAll('.jp-NotebookPanel')) {
      const inside = panel.closest('#jp-main-dock-panel') ? '' : ' outside of the main area';
      lines.push(`notebook ${isShown(panel) ? 'shown' : 'hidden'}${inside}: ${words(panel)}`);
    }
    for (const node of document.querySelectorAll('.jp-Dialog, .Toastify__toast, .lm-cursor-backdrop, .jp-Spinner')) {
      lines.push(`${name(node)} ${isShown(node) ? 'shown' : 'hidden'}: ${words(node)}`);
    }
    for (const [i, editor] of [...document.querySelectorAll('.jp-Notebook .jp-InputArea-editor')].entries()) {
      const { left, top, width, height } = editor.getBoundingClientRect();
      const over = document.elementFromPoint(left + width / 2, top + height / 2);
      if (isShown(editor) && over && !editor.contains(over)) {
        lines.push(`over editor ${i}: ${name(over)} ${words(over)}`);
      }
    }
    return lines;
  });
}
