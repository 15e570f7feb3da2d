/** What is always visible: the ranks of the next cell, however narrow the notebook and however many the ranks. */
import { Locator, Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, run, shutdownAll, startGroup } from './ranks';

test.beforeAll(async ({ request }) => {
  await startGroup(request, 'two', 2);
  await startGroup(request, 'eight', 8);
  await startGroup(request, 'many', 32);
});
test.afterAll(({ request }) => shutdownAll(request));

const toolbar = (page: Page): Locator =>
  page.locator('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-NotebookPanel-toolbar');

/** Whether all of it is in the toolbar's room, and nothing of it in the toolbar's menu, and its ranks are not cut off. */
async function isInSight(page: Page): Promise<boolean> {
  return toolbar(page).evaluate(bar => {
    const room = bar.getBoundingClientRect();
    const box = bar.querySelector('.jpd-RankPicker')?.getBoundingClientRect();
    const ranks = bar.querySelector('.jpd-RankPicker-ranks');
    const isIn = box !== undefined && box.width > 20 && box.left >= room.left && box.right <= room.right;
    return isIn && ranks !== null && ranks.scrollWidth <= ranks.clientWidth;
  });
}

test('the picker is visible at every width, and says which ranks', async ({ page }) => {
  const shots = process.env.SCREENSHOTS;
  lab.writeNotebook('layout.ipynb', ['print("line of", rank)\nprint("all")'], lab.onRanks('all', 'eight'));
  await lab.openNotebook(page, 'layout.ipynb');
  await command(page, 'jupyter-dist:show-sidebar');
  await expect(page.getByRole('region', { name: 'Group eight' })).toBeVisible();
  for (const [name, size] of [
    ['two', 2],
    ['eight', 8],
    ['many', 32]
  ] as const) {
    await lab.chooseTarget(page, name);
    for (const width of [1280, 1440, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      await expect.poll(() => isInSight(page), { message: `${name} at ${width}` }).toBe(true);
      await expect(lab.picker(page)).toHaveText(`${name} \u00b7 ${size} of ${size}`);
      if (shots) {
        await page.screenshot({ path: `${shots}/${name}-${width}.png` });
      }
    }
  }
});

test('a long set of ranks is chosen, named and read where there is little room', async ({ page }) => {
  lab.writeNotebook(
    'narrow.ipynb',
    ['if rank % 2: print("odd", rank % 2)\nelse: print("even")'],
    lab.onRanks('all', 'eight')
  );
  await page.setViewportSize({ width: 1280, height: 900 });
  await lab.openNotebook(page, 'narrow.ipynb');
  await command(page, 'jupyter-dist:show-sidebar');
  await expect(page.getByRole('region', { name: 'Group eight' })).toBeVisible();
  await expect(lab.picker(page)).toHaveAccessibleName('Run cells on: eight, ranks 0-7 (8 of 8)');
  const grid = await lab.openRanks(page);
  for (const rank of [0, 1, 2, 4, 6, 7]) {
    await grid.getByRole('button', { name: `Rank ${rank}, idle` }).click();
  }
  await page.keyboard.press('Escape');
  await expect(lab.picker(page)).toHaveAccessibleName('Run cells on: eight, ranks 0-2,4,6-7 (6 of 8)');
  await expect(lab.picker(page)).toContainText('0-2,4,6-7');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).summary).toContainText('6 ranks \u00b7 ok');
  const label = lab.cell(page, 0).node.locator('.jpd-RankItem-ranks').filter({ hasText: '0,2,4,6' });
  await expect(label).toHaveAttribute('title', 'ranks 0,2,4,6');
  const isClipped = await label.evaluate(
    node => node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight + 1
  );
  expect(isClipped).toBe(false);
});

test('where the toolbar has no room, the picker works in its menu', async ({ page }) => {
  lab.writeNotebook('overflow.ipynb', ['print("on", rank)'], lab.onRanks('all', 'two'));
  await lab.openNotebook(page, 'overflow.ipynb');
  await command(page, 'jupyter-dist:show-sidebar');
  await page.setViewportSize({ width: 800, height: 900 });
  const menu = page.locator('.jp-Toolbar-responsive-popup');
  const picker = menu.locator('.jpd-RankPicker-button');
  await expect(picker).toHaveCount(1);
  await expect(picker).toBeHidden();
  await lab.cell(page, 0).editor.click();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Alt+Shift+R');
  await expect(picker).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(lab.ranksDialog(page)).toBeInViewport({ ratio: 1 });
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Space');
  await expect(picker).toHaveText('two \u00b7 1');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+Enter');
  await expect(lab.cell(page, 0).items).toHaveText([/on 1/]);
});

test('a queued cell says which ranks of which cell it waits for', async ({ page, request }) => {
  await run(request, 'two', 'import time; time.sleep(1000)');
  lab.writeNotebook('waits.ipynb', ['print("at last")'], lab.onRanks('all', 'two'));
  await lab.openNotebook(page, 'waits.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText(/queued \u00b7 after cell \[\d+\] of train\.ipynb, running for \d/);
  await request.post('/jupyter-dist/api/groups/two/interrupt', { data: { ranks: 'all' } });
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
});
