/** A cell that cannot end says why, shows where all ranks are, and is run on the ranks that it waits for. */
import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request, 4));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const BARRIER = 'import torch.distributed as dist\nprint("begun")\ndist.barrier()\nprint("past it")';

test('stacks of all ranks; the ranks that a cell waits for get it as it was, also from another page', async ({
  page,
  context
}) => {
  lab.writeNotebook('hangs.ipynb', [BARRIER], lab.onRanks('0-1'));
  await lab.openNotebook(page, 'hangs.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  const question = page.getByRole('dialog');
  await expect(question).toContainText('barrier needs all 4 ranks, 2 are chosen.');
  await question.getByRole('button', { name: 'Run anyway' }).click();
  const card = cell.node.locator('.jpd-Verdict');
  await expect(card.getByRole('alert')).toContainText('Cannot end: ranks 0-1 called what ranks 2-3 did not call');

  // By keyboard: Enter in a notebook would edit the cell.
  const stacks = card.getByRole('region', { name: 'Stacks of all ranks' });
  const button = card.getByRole('button', { name: 'Stacks' });
  await button.focus();
  await page.keyboard.press('Enter');
  await expect(button).toHaveAttribute('aria-expanded', 'true');
  const [waiting, idle] = [stacks.locator('.jpd-Stack').first(), stacks.locator('.jpd-Stack').last()];
  await expect(waiting).toContainText(/^ranks 0-1 waits? in barrier/);
  await expect(waiting.locator('> ol > li')).toHaveText([/^cell \[\d+\]:3 <module> dist\.barrier\(\)$/]);
  await waiting.getByText('the whole stack').click();
  await expect(waiting.locator('details')).toContainText(/torch\/distributed\/distributed_c10d\.py:\d+ barrier/);
  await expect(idle).toHaveText('ranks 2-3 idle');
  await button.click();
  await expect(stacks).toBeHidden();

  // What is in the cell now is not what runs.
  await cell.editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('\nraise SystemError');
  await lab.saveNotebook(page);
  await lab.reload(page);
  const other = await context.newPage();
  await lab.openNotebook(other, 'hangs.ipynb');
  const name = 'Run on ranks 2-3, too';
  await expect(lab.cell(other, 0).node.getByRole('button', { name })).toBeVisible();
  await card.getByRole('button', { name }).click();
  for (const seen of [cell, lab.cell(other, 0)]) {
    await expect(seen.summary).toContainText('4 ranks \u00b7 ok');
    await expect(seen.items).toHaveText([/ranks 0-3.*begun\s+past it/s]);
    await expect(seen.node.locator('.jpd-Verdict')).toBeHidden();
  }
  await other.close();
});

test('a cell that needs all ranks and is for some asks first, and once for all cells of Run All', async ({ page }) => {
  const barrier = 'import torch.distributed as dist\ndist.barrier()\nprint("together")';
  lab.writeNotebook('needs.ipynb', [barrier, 'print("apart")', barrier], lab.onRanks('0-1'));
  await lab.openNotebook(page, 'needs.ipynb');
  const question = page.getByRole('dialog');
  await lab.runCell(page, 0);
  await expect(question).toContainText('This cell needs all ranks');
  await question.getByRole('button', { name: 'Cancel' }).click();
  await expect(lab.cell(page, 0).prompt).toHaveText('[ ]:');
  await expect(lab.cell(page, 0).ranks).toHaveCount(0);

  await lab.execute(page, 'notebook:run-all-cells');
  await question.getByRole('button', { name: 'Run on all' }).click();
  await expect(lab.cell(page, 2).summary).toContainText('4 ranks \u00b7 ok');
  await expect(lab.cell(page, 1).summary).toContainText('2 ranks \u00b7 ok');
  await expect(lab.cell(page, 0).summary).toContainText('4 ranks \u00b7 ok');
  await expect(question).toHaveCount(0);
});
