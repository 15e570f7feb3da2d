/** Notebook 7: one notebook per page, and the same picker, output and restart. */
import * as fs from 'fs';
import { expect, test } from '@playwright/test';
import * as lab from '../tests/lab';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('in Notebook 7 a cell runs on ranks, the picker chooses them, and Restart means them', async ({ page }) => {
  lab.writeNotebook('seven.ipynb', ['print("stale" if "marker" in globals() else "clean", rank); marker = 1']);
  await page.goto('/notebooks/seven.ipynb');
  await lab.sessionReady(page);
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.items).toHaveText([/clean 0/, /clean 1/]);
  await expect(lab.picker(page)).toContainText(lab.GROUP);
  await expect(page.locator('.jp-NotebookKernelStatus')).toHaveText('Kernel Unknown');
  await expect(page.locator('.jp-NotebookKernelStatus')).toBeHidden(); // it has no kernel, and needs none
  await (await lab.openRanks(page)).getByRole('button', { name: 'Rank 1, idle' }).click();
  await lab.runCell(page, cell);
  await expect(cell.items).toHaveText([/stale 1/]);
  await page.locator('[data-jp-item-name="restart"]').click();
  const dialog = page.getByRole('dialog').filter({ hasText: "Restart the 2 ranks of 'train'?" });
  await dialog.getByRole('button', { name: 'Restart' }).click();
  await expect(dialog).toHaveCount(0);
  await lab.runCell(page, cell);
  await expect(cell.items).toHaveText([/clean 1/]);
  await page.reload();
  await lab.sessionReady(page);
  await expect(lab.picker(page)).toHaveText(`${lab.GROUP} \u00b7 1`);
});

test('in Notebook 7 the time of a running cell leads to its line, and the notebook stays', async ({ page }) => {
  const stop = lab.newPath('stop');
  lab.writeNotebook('seventime.ipynb', [
    `import os, time\nwhile not os.path.exists(${JSON.stringify(stop)}):\n    time.sleep(0.1)`
  ]);
  await page.goto('/notebooks/seventime.ipynb');
  await lab.sessionReady(page);
  const cell = await lab.runCell(page, 0);
  await cell.tab('Folded').focus(); // no rank differs: the header comes with the focus
  await cell.node.getByRole('button', { name: 'Time', exact: true }).click();
  const region = cell.node.getByRole('region', { name: 'Where the time goes' });
  await region.getByRole('button', { name: /^cell \[\d+\]:3$/ }).click();
  const line = (): Promise<string | null | undefined> =>
    page.evaluate(() => window.getSelection()?.anchorNode?.parentElement?.closest('.cm-line')?.textContent);
  await expect.poll(line).toBe('    time.sleep(0.1)');
  fs.writeFileSync(stop, '');
  await expect(cell.summary).toContainText('ok');
});
