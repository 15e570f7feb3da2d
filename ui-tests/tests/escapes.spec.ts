/** Text with terminal escapes: shown as text, at no cost to the page. */
import { Locator, Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, computed, openLab, run } from './ranks';

test.describe.configure({ mode: 'serial' }); // a test reads what the one before has saved

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

/** A text that the page computes for this time at least stalls it; it is 0.2 s for each, and 0.7 s for a notebook of all. */
const MAX_SECONDS = 5;
const ESC = '\\x1b';
/** Python expressions of the texts that ranks say, each between two words. */
const TEXTS: Record<string, string> = {
  link: `"${ESC}]8;;javascript:window.__xss=1${ESC}\\\\press${ESC}]8;;${ESC}\\\\"`,
  title: `"${ESC}]0;window\\x07"`,
  markup: `"${ESC}[31m<img src=x onerror=window.__xss=2>${ESC}[0m"`,
  nested: `"".join(f"${ESC}[{30 + i % 8}m" for i in range(100_000))`,
  letters: `"".join(f"${ESC}[{i % 9};{30 + i % 8}mx" for i in range(25_000))`,
  wide: `"${ESC}[" + "38;5;1;" * 30_000 + "1m"`,
  unfinished: `"${ESC}]8;;" * 20_000 + "${ESC}[" + "1;" * 20_000`
};
const code = ([name, text]: [string, string]): string => `print("${name} begins", ${text}, "${ESC}[0m${name} ends")`;

/**
 * The seconds that the page computes from a start until a node shows some words. The page itself waits: what the test
 * asks of it would be computed, too.
 */
function untilShown(page: Page, start: () => Promise<void>, selector: string, words: string): Promise<number> {
  return computed(page, async () => {
    await start();
    await page.waitForFunction(
      ([selector, words]) => [...document.querySelectorAll(selector)].some(node => node.textContent!.includes(words)),
      [selector, words] as const,
      { polling: 100, timeout: 120000 }
    );
    await page.waitForTimeout(300); // what is shown later
  });
}

async function expectNoMarkup(page: Page, root: Locator): Promise<void> {
  await expect(root.getByText('<img src=x onerror=window.__xss=2>').last()).toBeAttached();
  await expect(root.getByText(/link begins .*press.* link ends/).last()).toBeAttached();
  await expect(root.locator('img, a[href^="javascript"]')).toHaveCount(0);
  expect(await page.evaluate(() => '__xss' in window)).toBe(false);
}

/** All cells are there; each is scrolled into view once. */
async function expectCells(page: Page): Promise<void> {
  for (const [i, name] of Object.keys(TEXTS).entries()) {
    const { node, items } = lab.cell(page, i);
    await node.scrollIntoViewIfNeeded();
    await expect(items.first()).toContainText(`${name} begins`);
    await expect(items.last()).toContainText(`${name} ends`);
  }
  await expectNoMarkup(page, page.locator('.jpd-RankItems'));
}

test('escapes in text are shown as text and do not stall the page', async ({ page }) => {
  lab.writeNotebook('escapes.ipynb', Object.entries(TEXTS).map(code));
  await lab.openNotebook(page, 'escapes.ipynb');
  await lab.cell(page, 0).editor.click();
  await page.keyboard.press('Escape');
  for (const name of Object.keys(TEXTS)) {
    // Runs the cell and goes to the next.
    const runs = (): Promise<void> => command(page, 'notebook:run-cell-and-select-next');
    expect(await untilShown(page, runs, '.jpd-RankItems', `${name} ends`), name).toBeLessThan(MAX_SECONDS);
  }
  await expectCells(page);
  await lab.saveNotebook(page);
});

test('escapes in a saved notebook do not stall the page', async ({ page }) => {
  await openLab(page);
  const args = { path: 'escapes.ipynb', kernelPreference: { shouldStart: false, canStart: false } };
  const opens = (): Promise<void> => command(page, 'docmanager:open', args);
  // JupyterLab's own share of opening a notebook is in it.
  const seconds = await untilShown(page, opens, '.jpd-RankItems', 'unfinished ends');
  expect(seconds).toBeLessThan(MAX_SECONDS);
  await expectCells(page);
});

test('escapes in the rank output do not stall the page', async ({ page, request }) => {
  await openLab(page);
  await command(page, 'jupyter-dist:open-log', { group: lab.GROUP, rank: 0 });
  const log = page.getByRole('log', { name: 'Output of rank 0' });
  await expect(log).toContainText('unfinished ends');
  for (const [name, text] of Object.entries(TEXTS).reverse()) {
    const says = (): Promise<void> => run(request, lab.GROUP, code([`again ${name}`, text]));
    expect(await untilShown(page, says, '.jpd-RankLog', `again ${name} ends`), name).toBeLessThan(MAX_SECONDS);
  }
  await expectNoMarkup(page, log);
});
