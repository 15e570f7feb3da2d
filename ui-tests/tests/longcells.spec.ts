/** Long cells say when they have ended, and cells that cannot end say so. */
import { APIRequestContext, expect, test } from '@playwright/test';
import * as lab from './lab';

// In the headless build every page has the focus, always.
test.use({
  launchOptions: async ({ launchOptions }, use) =>
    use({ ...launchOptions, executablePath: process.env.CHROMIUM_WITH_WINDOWS })
});

const SETTINGS = '/lab/api/settings/jupyter-dist:long-cells';

async function setLong(request: APIRequestContext, seconds: number | null): Promise<void> {
  const raw = JSON.stringify(seconds === null ? {} : { longSeconds: seconds });
  const answer = await request.put(SETTINGS, { data: { raw } });
  expect(answer.status()).toBe(204);
}

test.beforeAll(async ({ request }) => {
  await lab.startGroup(request);
  await setLong(request, 1);
});
test.afterAll(async ({ request }) => {
  await setLong(request, null);
  await lab.shutdownGroup(request);
});

test('a short cell, a long one, one that fails and one that cannot end', async ({ page, context }) => {
  const long = 'import time; time.sleep(1.5)';
  lab.writeNotebook('long.ipynb', ['print("short")', long, `${long}; 1 / 0`, 'if rank == 0: dist.barrier()']);
  await lab.openNotebook(page, 'long.ipynb');
  const toasts = page.locator('.Toastify__toast');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).summary).toContainText('ok');
  await lab.runCell(page, 1);
  await expect(toasts.filter({ hasText: /Cell \[2\] of long\.ipynb \(ranks 0-1\): ok after 1\.\d s/ })).toBeVisible();
  await expect(toasts.filter({ hasText: 'Cell [1]' })).toHaveCount(0);

  // Who looks at something else sees a mark in the title.
  const devtools = await context.newCDPSession(page);
  await devtools.send('Emulation.setFocusEmulationEnabled', { enabled: false });
  const title = await page.title();
  await lab.runCell(page, 2);
  const other = await context.newPage();
  await other.bringToFront();
  await expect.poll(() => page.title()).toBe(`\u25CF ${title}`);
  await page.bringToFront();
  await expect.poll(() => page.title()).not.toContain('\u25CF');
  await other.close();
  const failed = toasts.filter({ hasText: /Cell \[3\] of long\.ipynb \(ranks 0-1\): error after/ });
  await page.getByRole('tab', { name: 'Launcher' }).first().click();
  await failed.getByRole('button', { name: 'Show the cell' }).click();
  await expect(lab.cell(page, 2).node).toBeVisible();
  await expect(page.locator('.jp-Notebook .jp-Cell.jp-mod-active')).toContainText('1 / 0');

  await lab.runCell(page, 3);
  await expect(
    toasts.filter({ hasText: /Cell \[4\] of long\.ipynb \(ranks 0-1\): Cannot end: rank 0 called / })
  ).toBeVisible();
  // A group has one notification.
  await expect(failed).toHaveCount(0);
  await expect(toasts.filter({ hasText: 'long.ipynb' })).toHaveCount(1);
  await lab.cell(page, 3).node.getByRole('button', { name: 'Interrupt these ranks' }).click();
  await expect(lab.cell(page, 3).summary).toContainText('interrupted');
  // It says nothing that is over.
  await expect(toasts.filter({ hasText: 'cannot end' })).toHaveCount(0);
  // The cell has one line of it, until it runs again.
  const past = lab.cell(page, 3).node.locator('.jpd-Verdict-past');
  await expect(past).toHaveText(/^For .+, rank 0 waited for rank 1\.$/);
  await lab.cell(page, 3).editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('1');
  await lab.runCell(page, 3);
  await expect(lab.cell(page, 3).summary).toContainText('ok');
  await expect(past).toBeHidden();
});
