import { Page } from '@playwright/test';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, computed, openLab, run, shutdownAll, startGroup } from './ranks';

test.beforeEach(async ({ page, request }) => {
  await shutdownAll(request);
  await startGroup(request, 'train', 2);
  await openLab(page);
});

test.afterAll(async ({ request }) => shutdownAll(request));

const log = (page: Page, rank: number) => page.getByRole('log', { name: `Output of rank ${rank}` });

test("keeps a rank's output across cells, rendered", async ({ page, request }) => {
  await run(request, 'train', 'print("\\x1b[31mred\\x1b[0m", rank)');
  await run(request, 'train', 'from IPython.display import HTML; HTML("<b>bold</b>")');
  await run(request, 'train', '1/0', { ranks: '1', wait: true });
  await command(page, 'jupyter-dist:open-log', { group: 'train', rank: 1 });
  await expect(log(page, 1).getByText('red 1')).toBeVisible();
  await expect(log(page, 1).locator('.ansi-red-fg').first()).toHaveText('red');
  await expect(log(page, 1).locator('b')).toHaveText('bold');
  await expect(log(page, 1).getByRole('heading', { name: '[3] train.ipynb 1/0 error' })).toBeVisible();
  await page.getByRole('tab', { name: '0' }).click();
  await expect(log(page, 0).getByText('red 0')).toBeVisible();
  await expect(log(page, 0).getByRole('heading')).toHaveCount(2);
});

test('counts the lines that it no longer shows', async ({ page, request }) => {
  await command(page, 'jupyter-dist:open-log', { group: 'train', rank: 0 });
  // In parts: of a flood that the page cannot follow, it does not know how many lines it has left out, and says no number.
  for (const part of [0, 1, 2, 3]) {
    await run(request, 'train', `for i in range(2000): print("line", ${2000 * part} + i, flush=i % 100 == 0)`, {
      wait: true
    });
    await expect(log(page, 0)).toContainText(`line ${2000 * part + 1999}`);
  }
  const shown = await log(page, 0).evaluate(node => (node as HTMLElement).innerText.match(/line \d+/g)!);
  const first = Number(shown[0].slice('line '.length));
  expect(first).toBeGreaterThan(0);
  expect(shown).toHaveLength(8000 - first);
  const notice = page.locator('.jpd-RankLog-above').getByText('older lines are not shown.');
  await expect.poll(async () => Number((await notice.innerText()).split(' ')[0].replace(/\D/g, ''))).toBe(first);
});

test('follows what is new, until one looks up', async ({ page, request }) => {
  await command(page, 'jupyter-dist:open-log', { group: 'train', rank: 0 });
  await run(request, 'train', 'import time\nfor i in range(400): print("line", i); time.sleep(0.005)');
  await expect(log(page, 0)).toContainText('line 100');
  const follow = page.getByRole('button', { name: 'Follow new output' });
  await expect(follow).toHaveAttribute('aria-pressed', 'true');
  await log(page, 0).hover();
  await page.mouse.wheel(0, -600);
  await expect(follow).toHaveAttribute('aria-pressed', 'false');
  await expect(log(page, 0)).toContainText('line 399');
  await follow.click();
  await expect(log(page, 0).getByText('line 399')).toBeInViewport();
});

test('finds text', async ({ page, request }) => {
  await run(request, 'train', 'for i in range(50): print("line", i)', { wait: true });
  await command(page, 'jupyter-dist:open-log', { group: 'train', rank: 0 });
  await expect(log(page, 0)).toContainText('line 49');
  await expect(log(page, 0)).toBeFocused();
  const field = page.getByRole('textbox', { name: 'Find in visible output' });
  await page.keyboard.press('Control+f');
  await expect(field).toBeFocused();
  await page.keyboard.type('LINE 4');
  const count = page.locator('.jpd-LogSearch-count');
  await expect(count).toHaveText('11/11');
  await page.keyboard.press('Enter');
  await expect(count).toHaveText('1/11');
  await page.keyboard.press('Shift+Enter');
  await expect(count).toHaveText('11/11');
  await page.keyboard.press('Escape');
  await expect(log(page, 0)).toBeFocused();
  await page.setViewportSize({ width: 620, height: 600 });
  await page.keyboard.press('Control+f');
  await expect(field).toBeFocused();
  await expect(page.getByRole('link', { name: 'Download the full log of rank 0' })).toBeInViewport();
  await page.keyboard.type('LINE 3');
  await expect(count).toHaveText('11/11');
});

test('survives a flood: bounded, never stuck, and the past is a click away', async ({ page, request }) => {
  await command(page, 'jupyter-dist:open-log', { group: 'train', rank: 0 });
  await expect(log(page, 0)).toBeVisible();
  const seconds = await computed(page, async () => {
    await run(request, 'train', 'for i in range(100000): print("line", i, "\\x1b[32mgreen\\x1b[0m")');
    await expect(log(page, 0)).toContainText('line 99999 green');
  });
  const lines = await log(page, 0).evaluate(node => (node as HTMLElement).innerText.split('\n').length);
  expect(lines).toBeLessThan(5100);
  // What is stuck computes for long; this is under half a second.
  expect(seconds).toBeLessThan(10);
  await expect(page.locator('.jpd-RankLog-above')).toHaveText(/[Oo]lder lines are not shown/);
  const first = await log(page, 0).locator('pre').first().innerText();
  await page.getByRole('button', { name: 'Load older' }).click();
  await expect(log(page, 0).locator('pre').first()).not.toHaveText(first);
  await page.getByRole('button', { name: 'Jump to the end' }).click();
  await expect(log(page, 0).getByText('line 99999 green')).toBeInViewport();
});

test('clears the view, not the log; downloads the log', async ({ page, request }) => {
  await run(request, 'train', 'print("once")', { wait: true });
  await command(page, 'jupyter-dist:open-log', { group: 'train', rank: 0 });
  await expect(log(page, 0)).toContainText('once');
  await page.getByRole('button', { name: /Clear the view/ }).click();
  await expect(log(page, 0)).not.toContainText('once');
  await page.getByRole('button', { name: 'Load older' }).click();
  await expect(log(page, 0)).toContainText('once');
  const link = page.getByRole('link', { name: /Download the full log/ });
  const href = await link.getAttribute('href');
  // An address stays in histories and in the logs of proxies.
  expect(href).not.toContain('token');
  const file = await request.get(href!);
  expect(file.headers()['content-disposition']).toContain('attachment');
  expect(await file.text()).toContain('once');
  // With the browser's cookie as a plain download; without, by the page, which has the token.
  for (const prefix of ['http', 'blob']) {
    if (prefix === 'blob') {
      await page.route(/\/jupyter-dist\/api\/groups\/[^/]+$/, route => route.fulfill({ status: 403 }));
    }
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    expect(download.url()).toMatch(new RegExp(`^${prefix}`));
    expect(download.suggestedFilename()).toMatch(/^g-[0-9a-f]+-rank-0\.log$/);
    expect(fs.readFileSync(await download.path(), 'utf8')).toContain('once');
  }
});

test('output of others runs no script in the rank output', async ({ page, request }) => {
  const html = (who: string): string =>
    `from IPython.display import HTML\ndisplay(HTML("<b>by ${who}</b><img src='x:' onerror=\\"(window.ran = window.ran || []).push('${who}')\\">"))`;
  await run(request, 'train', html('another'), { ranks: '0', wait: true });
  lab.writeNotebook('own.ipynb', [html('me')], { jupyter_dist: { group: 'train', ranks: '0' } });
  await lab.openNotebook(page, 'own.ipynb');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).node).toContainText('by me');
  const ran = (): Promise<string[]> => page.evaluate(() => (window as unknown as { ran?: string[] }).ran ?? []);
  await expect.poll(ran).toEqual(['me']);
  await page.evaluate(() => delete (window as unknown as { ran?: string[] }).ran);
  await command(page, 'jupyter-dist:open-log', { group: 'train', rank: 0 });
  await expect(log(page, 0)).toContainText('by another');
  await expect(log(page, 0)).toContainText('by me');
  await expect.poll(ran).toEqual(['me']);
});

test.describe('where the clock of the browser is five minutes ahead of the server', () => {
  test.use({ ownPage: true });

  test('a cell shows how long it has run', async ({ page }) => {
    await page.addInitScript(() => {
      const now = Date.now;
      Date.now = () => now() + 300_000;
    });
    await page.reload();
    lab.writeNotebook('ahead.ipynb', ['import time; time.sleep(1000)']);
    await lab.openNotebook(page, 'ahead.ipynb');
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    await expect(cell.summary).toHaveText(/2 ranks \u00b7 running \u00b7 [\d.]+ m?s$/);
    await expect(cell.node.getByRole('tab', { name: /^Rank 0, running [\d.]+ m?s$/ })).toBeVisible();
  });
});
