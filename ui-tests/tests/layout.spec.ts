/** What is always visible: the ranks of the next cell, however narrow the notebook and however many the ranks. */
import { Locator, Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, run, shutdownAll, startGroup } from './ranks';

const LONG = 'llama-70b-ablation-no-warmup-v3';

test.beforeAll(async ({ request }) => {
  await startGroup(request, 'two', 2);
  await startGroup(request, 'eight', 8);
  await startGroup(request, 'many', 32);
  await startGroup(request, LONG, 2);
});
test.afterAll(({ request }) => shutdownAll(request));

const toolbar = (page: Page): Locator => page.locator(`${lab.SHOWN_NOTEBOOK} .jp-NotebookPanel-toolbar`);

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
    ['many', 32],
    [LONG, 2]
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

/** Whether some of a text is not seen, because its box is too small. */
const isCut = (text: Locator): Promise<boolean> =>
  text.evaluate(node => node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight + 1);

/** The words of a text that begin on one line and end on the next. */
const brokenWords = (text: Locator): Promise<string[]> =>
  text.evaluate(node => {
    const broken: string[] = [];
    const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    for (let part = texts.nextNode(); part; part = texts.nextNode()) {
      for (const { 0: word, index } of part.textContent!.matchAll(/[a-z]+/gi)) {
        const range = document.createRange();
        range.setStart(part, index);
        range.setEnd(part, index + word.length);
        if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) {
          broken.push(word);
        }
      }
    }
    return broken;
  });

test('outputs of many ranks, and a hang of them, are shown without cut texts and without repetition', async ({
  page
}) => {
  const cells = [
    'print("odd" if rank % 2 else "even")',
    'if rank == 1: raise ValueError("of rank 1")',
    'if rank != 1: dist.barrier()'
  ];
  lab.writeNotebook('training.ipynb', cells, lab.onRanks('all', 'many'));
  await page.setViewportSize({ width: 1280, height: 900 });
  await lab.openNotebook(page, 'training.ipynb');
  await command(page, 'jupyter-dist:show-sidebar');
  const [folded, failed, hung] = [0, 1, 2].map(index => lab.cell(page, index));
  await lab.runCell(page, folded);
  await expect(folded.summary).toContainText('32 ranks \u00b7 ok');
  await lab.runCell(page, failed);
  await expect(failed.summary).toContainText('31 ok, rank 1 error');

  const label = folded.node.locator('.jpd-RankItem-ranks').filter({ hasText: '0,2,\u2026,30' });
  await expect(label).toHaveAttribute('title', /^ranks 0,2,4,6,.*28,30$/);
  expect(await isCut(label)).toBe(false);
  // Summaries end at the same place, whatever buttons are hidden beside them.
  await page.mouse.move(5, 895);
  const ends = await page
    .locator('.jpd-Ranks-summary')
    .evaluateAll(nodes => nodes.map(node => node.getBoundingClientRect().right));
  expect(ends).toHaveLength(2);
  expect(ends[1]).toBeCloseTo(ends[0], 0);

  await lab.runCell(page, hung);
  await expect(hung.node.locator('.jpd-Verdict')).toContainText('ranks 0,2-31 wait in barrier');
  const rows = page.getByRole('region', { name: 'Group many' }).locator('.jpd-RankRow');
  await expect(rows.first().locator('.jpd-RankRow-state')).toHaveText(/^\[\d+\] training\.ipynb$/);
  expect(await isCut(rows.first().locator('.jpd-RankRow-state'))).toBe(false);
  await expect(rows.locator('.jpd-RankRow-detail').filter({ hasText: 'Waits in barrier' })).toHaveCount(1);

  // JupyterLab shows 140 characters of a notification.
  const toast = page.locator('.Toastify__toast').filter({ hasText: 'cannot end' });
  await toast.getByRole('button', { name: 'Read all' }).click();
  await expect(
    page.getByRole('dialog').filter({ hasText: /being idle, will not\. Ranks 0,2-31 wait in .+; rank 1 idle/ })
  ).toBeVisible();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await expect(toast).toBeVisible();
  await hung.node.getByRole('button', { name: 'Interrupt these ranks' }).click();
  await expect(hung.summary).toContainText('interrupted');
  await expect(toast).toHaveCount(0);

  await command(page, 'jupyter-dist:open-log', { group: 'many', rank: 0 });
  const log = page.getByRole('log', { name: 'Output of rank 0' }).locator('pre').filter({ hasText: 'never completed' });
  await expect(log).toBeVisible();
  expect(await brokenWords(log)).toEqual([]);
});

test('at 200 % zoom the notebook keeps room between the sidebars, and what was opened last stays', async ({ page }) => {
  lab.writeNotebook('zoomed.ipynb', ['print("line of", rank)'], lab.onRanks('all', 'two'));
  await lab.openNotebook(page, 'zoomed.ipynb');
  const files = page.locator('#filebrowser');
  const ranks = page.locator('.jpd-Sidebar');
  await lab.execute(page, 'filebrowser:activate');
  await command(page, 'jupyter-dist:show-sidebar');
  await expect(files).toBeVisible();
  await expect(ranks).toBeVisible();
  await page.setViewportSize({ width: 640, height: 450 }); // what 1280 px are at 200 %
  await expect(files).toBeHidden();
  await expect(ranks).toBeVisible();
  const width = (): Promise<number> => page.locator('.jp-Notebook').evaluate(node => node.clientWidth);
  await expect.poll(width).toBeGreaterThan(200);
  await lab.execute(page, 'filebrowser:activate');
  await expect(files).toBeVisible();
  await expect(ranks).toBeHidden();
  await expect.poll(width).toBeGreaterThan(200);
  await command(page, 'jupyter-dist:show-sidebar');
  await expect(ranks).toBeVisible();
  await expect(files).toBeHidden();
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
