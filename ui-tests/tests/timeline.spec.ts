/** The timeline of ranks. */
import { APIRequestContext, Locator, Page } from '@playwright/test';
import { expect, test } from './fixtures';
import { execute, GROUP, openNotebook, writeNotebook } from './lab';
import { chooseInCard, command, openLab, run, shutdownAll, startGroup } from './ranks';

test.afterAll(async ({ request }) => shutdownAll(request));

const panel = (page: Page): Locator => page.getByRole('tabpanel', { name: `Timeline: ${GROUP}` });
const lanes = (page: Page): Locator => panel(page).getByRole('group', { name: `Timeline of ${GROUP}` });
const row = (page: Page, rank: number): Locator => panel(page).locator(`tr[data-rank="${rank}"]`);

/** What the lanes show, in seconds. */
async function seen(page: Page): Promise<{ from: number; to: number; seconds: number }> {
  const [from, to] = await lanes(page).evaluate(node => [Number(node.dataset.from), Number(node.dataset.to)]);
  return { from, to, seconds: to - from };
}

async function group(request: APIRequestContext): Promise<{ ranks: { pid: number; device: string }[] }> {
  return (await request.get(`/jupyter-dist/api/groups/${GROUP}`)).json();
}

test('a table of real ranks, which sorts, and lanes that zoom by keyboard, wheel and brush', async ({
  page,
  request
}) => {
  await shutdownAll(request);
  await startGroup(request, GROUP, 2);
  await openLab(page);
  await run(request, GROUP, 'held = torch.ones(50_000_000) if rank == 1 else None', { wait: true });
  await command(page, 'jupyter-dist:show-sidebar');
  await chooseInCard(page, GROUP, 'Show Timeline of Ranks');
  const { ranks } = await group(request);
  for (const [rank, { pid, device }] of ranks.entries()) {
    await expect(row(page, rank)).toContainText(`${pid}`);
    await expect(row(page, rank)).toContainText(device);
    await expect(row(page, rank).locator('[data-column="memory"]')).toHaveText(/\d MB|\d GB/);
  }
  await panel(page).getByRole('button', { name: 'Memory' }).click();
  await expect(panel(page).locator('tbody tr').first()).toHaveAttribute('data-rank', '1');
  await expect(panel(page)).toContainText('CPU ranks have no device');

  await expect(lanes(page)).toHaveAttribute('data-to', /\d/);
  const all = await seen(page);
  await lanes(page).focus();
  await page.keyboard.press('+');
  await expect.poll(async () => (await seen(page)).seconds).toBeLessThan(all.seconds * 0.8);
  const closer = await seen(page);
  await page.keyboard.press('ArrowLeft');
  await expect.poll(async () => (await seen(page)).from).toBeLessThan(closer.from);
  await page.keyboard.press('0');
  await expect.poll(async () => (await seen(page)).seconds).toBeGreaterThanOrEqual(all.seconds - 1);
  const box = (await lanes(page).boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20);
  await page.mouse.wheel(0, -300);
  await expect.poll(async () => (await seen(page)).seconds).toBeLessThan(all.seconds * 0.8);
  await page.mouse.dblclick(box.x + box.width * 0.5, box.y + 30);
  await expect.poll(async () => (await seen(page)).seconds).toBeGreaterThanOrEqual(all.seconds - 1);
  await page.mouse.move(box.x + box.width * 0.5, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 30, { steps: 4 });
  await page.mouse.up();
  await expect.poll(async () => (await seen(page)).seconds).toBeLessThan(all.seconds * 0.4);
  await panel(page).getByRole('button', { name: 'All', exact: true }).click();
  await expect.poll(async () => (await seen(page)).seconds).toBeGreaterThanOrEqual(all.seconds - 1);
});

test('bands of 8 ranks lead to their cell, by keyboard and by a click, and a wait is named', async ({
  page,
  request
}) => {
  await shutdownAll(request);
  await startGroup(request, GROUP, 8);
  writeNotebook('timeline.ipynb', [
    'import time; time.sleep(1.5)',
    ...Array.from({ length: 12 }, (_, i) => `filler = ${i}\n\n\n\n`),
    'if rank == 0:\n    torch.distributed.all_reduce(torch.ones(4))\nelse:\n    time.sleep(1000)'
  ]);
  await openNotebook(page, 'timeline.ipynb');
  await page.locator('.jp-Notebook .jp-CodeCell').first().locator('.jp-InputArea-editor').click();
  await execute(page, 'notebook:run-all-cells');
  await command(page, 'jupyter-dist:open-timeline', { group: GROUP });
  // What runs now, and where rank 0 was seen.
  await expect(row(page, 0)).toContainText('[14] timeline.ipynb');
  await expect(row(page, 0)).toContainText(/\[14\].*in all_reduce.*line 2: /);
  await expect(row(page, 7)).toContainText('line 4: ');

  const active = page.locator('.jp-Notebook .jp-Cell.jp-mod-active');
  await page.mouse.move(2, 2);
  await lanes(page).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Shift+ArrowRight');
  await expect(panel(page).locator('.jpd-Timeline-readout')).toContainText(
    /rank 0, .*\[1\] timeline.ipynb .*ok 1\.[5-9] s/
  );
  await expect(row(page, 0)).toHaveAttribute('data-pointed', 'true');
  await page.keyboard.press('Enter');
  await expect(active).toContainText('time.sleep(1.5)');
  await expect(active).toBeInViewport();

  await row(page, 7).getByRole('button', { name: '[14]' }).click();
  await expect(active).toContainText('all_reduce');
  // The first cell's band, with the pointer: where the keyboard put the cursor.
  const cursor = panel(page).locator('.jpd-Timeline-cursor');
  await lanes(page).focus();
  await page.keyboard.press('Shift+ArrowRight');
  await expect(async () => {
    // The lanes move while the last cell runs: between the two, a busy machine may miss the band.
    const line = (await cursor.boundingBox())!;
    const box = (await lanes(page).boundingBox())!;
    await page.mouse.click(line.x + 3, box.y + 6);
    await expect(active).toContainText('time.sleep(1.5)', { timeout: 2000 });
  }).toPass();

  await request.post(`/jupyter-dist/api/groups/${GROUP}/interrupt`, { data: { ranks: 'all' } });
  await expect(row(page, 0)).toContainText('idle');
  await row(page, 5).getByRole('button', { name: '5', exact: true }).click();
  await expect(page.getByRole('tabpanel', { name: `Rank output: ${GROUP}` })).toBeVisible();
});
