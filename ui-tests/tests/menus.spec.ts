/** JupyterLab's commands that act on several cells, in a notebook on ranks without a kernel. */
import { Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const WORDS = ['one', 'two', 'three', 'four'];

/** These cells have run, and no others. */
async function expectRan(page: Page, ...indices: number[]): Promise<void> {
  for (const index of indices) {
    await expect(lab.cell(page, index).summary).toContainText('2 ranks \u00b7 ok');
    await expect(lab.cell(page, index).items.first()).toContainText(WORDS[index]);
  }
  for (const index of WORDS.keys()) {
    if (!indices.includes(index)) {
      await expect(lab.cell(page, index).ranks).toHaveCount(0);
      await expect(lab.cell(page, index).prompt).toHaveText('[ ]:');
    }
  }
}

test('Run Above, Run Below, Run Selected, Clear and Restart and Clear mean the cells on ranks', async ({ page }) => {
  lab.writeNotebook(
    'menus.ipynb',
    WORDS.map(word => `${word} = 1; print("${word}", "again" if "seen" in globals() else "first"); seen = 1`)
  );
  await lab.openNotebook(page, 'menus.ipynb');
  await lab.cell(page, 2).editor.click();
  await lab.execute(page, 'notebook:run-all-above');
  await expectRan(page, 0, 1);
  await lab.cell(page, 2).editor.click();
  await lab.execute(page, 'notebook:run-all-below');
  await expectRan(page, 0, 1, 2, 3);

  await lab.execute(page, 'notebook:clear-all-cell-outputs');
  await expectRan(page);
  await lab.cell(page, 1).prompt.click();
  await lab.execute(page, 'notebook:extend-marked-cells-below');
  await page.locator('[data-jp-item-name="run"]').click();
  await expectRan(page, 1, 2);
  await expect(lab.cell(page, 1).items.first()).toContainText('again');

  await page.locator('[data-jp-item-name="save"]').click();
  await lab.execute(page, 'notebook:restart-clear-output');
  const dialog = page.getByRole('dialog').filter({ hasText: "Restart the 2 ranks of 'train'?" });
  await dialog.getByRole('button', { name: 'Restart' }).click();
  await expectRan(page);
  await lab.execute(page, 'notebook:run-all-cells');
  await expectRan(page, 0, 1, 2, 3);
  await expect(lab.cell(page, 0).items.first()).toContainText('first');
});
