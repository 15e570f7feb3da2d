/** The strip in the margin of a notebook that shows where ranks began to differ. */
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, openLab, shutdownAll, startGroup } from './ranks';

test.beforeAll(({ request }) => startGroup(request, 'four', 4));
test.afterAll(({ request }) => shutdownAll(request));

test('the ruler is not there while ranks agree, and goes to the first difference, not to the last error', async ({
  page
}) => {
  const agreeing = ['seed = 0', 'print("same")', 'seed'];
  const sources = [...agreeing, 'scale = 1 + rank // 3', 'print("fine")', 'if rank == 2: raise ValueError("odd")'];
  lab.writeNotebook('ruler.ipynb', sources, lab.onRanks('all', 'four'));
  await lab.openNotebook(page, 'ruler.ipynb');
  const ruler = page.locator(`${lab.SHOWN_NOTEBOOK} .jpd-Ruler`);
  const marks = ruler.locator('.jpd-Ruler-mark');
  for (let i = 0; i < agreeing.length; i++) {
    const listed = page.waitForResponse(answer => answer.url().includes('/variables'));
    await lab.runCell(page, i);
    await expect(lab.cell(page, i).prompt).toHaveText(`[${i + 1}]:`);
    expect((await listed).ok()).toBe(true); // its variables were compared, too
  }
  await expect(ruler).toBeHidden();

  await lab.runCell(page, 3);
  await expect(marks).toHaveCount(1);
  await expect(marks.first()).toHaveAccessibleName(/^\[4\], .*: scale differs: 1 on ranks 0-2, 2 on rank 3$/);
  await lab.runCell(page, 4);
  await lab.runCell(page, 5);
  await expect(marks).toHaveCount(2);
  await expect(marks.last()).toHaveAccessibleName(/^\[6\], .*: rank 2 error: ValueError: odd/);
  await expect(ruler).toHaveAttribute('title', /^Ranks began to differ in \[4\]/);

  // The strip goes to the first one, a mark to its own, and keys do the same.
  const active = page.locator('.jp-Notebook .jp-Cell.jp-mod-active .jp-InputPrompt');
  await expect(active).toHaveText('[6]:');
  await ruler.click({ position: { x: 5, y: 2 } });
  await expect(active).toHaveText('[4]:');
  await marks.last().click();
  await expect(active).toHaveText('[6]:');
  await marks.last().focus();
  await page.keyboard.press('Home');
  await expect(marks.first()).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(active).toHaveText('[4]:');
  await marks.last().click();
  await command(page, 'jupyter-dist:first-difference');
  await expect(active).toHaveText('[4]:');

  // What was saved is known again, and ranks are asked again; when they agree, it goes.
  await lab.saveNotebook(page);
  await openLab(page);
  await lab.openNotebook(page, 'ruler.ipynb');
  await expect(marks).toHaveCount(2);
  await expect(marks.first()).toHaveAccessibleName(/scale differs/);
  await lab.cell(page, 3).editor.locator('.cm-content').fill('scale = 1');
  await lab.runCell(page, 3);
  await expect(marks).toHaveCount(1);
  await lab.cell(page, 5).editor.locator('.cm-content').fill('print("all")');
  await lab.runCell(page, 5);
  await expect(ruler).toBeHidden();
});
