/** Counts what a page shows: controls, words and pixels, of this extension and in all. */
import { Locator, Page } from '@playwright/test';

export interface ICounts {
  /** Controls that are seen, and those of them that are this extension's. */
  controls: number;
  ours: number;
  /** The labels of ours, to see what they are. */
  labels: string[];
  /** Words that are seen, without the launcher's and the file browser's. */
  words: number;
}

/** Count in the page as it is seen now: what is outside of the window, hidden or transparent does not count. */
export async function countControls(page: Page): Promise<ICounts> {
  return page.evaluate(() => {
    const isSeen = (node: Element): boolean => {
      const box = node.getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      if (box.width < 2 || box.height < 2 || x < 0 || y < 0 || x > innerWidth || y > innerHeight) {
        return false;
      }
      for (let up: Element | null = node; up; up = up.parentElement) {
        const { opacity, visibility, display, overflowX } = getComputedStyle(up);
        const frame = up.getBoundingClientRect();
        const isScrolledAway = overflowX !== 'visible' && frame.width > 0 && (x < frame.left || x > frame.right);
        if (opacity === '0' || visibility !== 'visible' || display === 'none' || isScrolledAway) {
          return false;
        }
      }
      return true;
    };
    const selector =
      'button, input, select, textarea, summary, a[href], [role="tab"], [role="button"], [role="menuitem"], jp-button';
    const controls = [...document.querySelectorAll(selector)]
      .filter(node => !node.parentElement?.closest('button, jp-button, a[href], [role="tab"], [role="button"]'))
      .filter(isSeen);
    const ours = controls.filter(node => node.closest('[class*="jpd-"]'));
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let words = 0;
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      if (parent && !parent.closest('style, script, .jp-DirListing') && isSeen(parent)) {
        words += (walker.currentNode.textContent ?? '').split(/\s+/).filter(Boolean).length;
      }
    }
    const label = (node: Element): string =>
      node.getAttribute('aria-label') ?? (node.textContent || node.getAttribute('title') || node.className);
    return { controls: controls.length, ours: ours.length, labels: ours.map(label), words };
  });
}

/** The height of an element in CSS pixels; 0 if it is not there. */
export async function heightOf(element: Locator): Promise<number> {
  return (await element.count()) === 0 ? 0 : element.first().evaluate(node => node.getBoundingClientRect().height);
}
