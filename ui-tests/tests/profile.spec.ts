/** A profiled cell has one table, and a button that saves the merged trace. */
import { readFile } from 'fs/promises';
import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request, 2));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const SLOW = `%%profile
import time, torch
x = torch.ones(32, 32) @ torch.ones(32, 32)
if rank == 1: time.sleep(1)
dist.all_reduce(x)`;

test('a straggler is named in the cell, and the trace of all ranks is one file', async ({ page }) => {
  lab.writeNotebook('profile.ipynb', [SLOW, 'print(1)'], lab.onRanks());
  await lab.openNotebook(page, 'profile.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.items.last()).toContainText('Rank 1 was the last');
  const rows = cell.node.getByRole('row');
  await expect(rows.first()).toContainText('kept others waiting');
  await expect(rows).toHaveCount(3);

  // By keyboard.
  const button = cell.node.getByRole('button', { name: 'Download trace' });
  const saving = page.waitForEvent('download');
  await button.focus();
  await page.keyboard.press('Enter');
  const file = await saving;
  expect(file.suggestedFilename()).toMatch(/^.*-e-[0-9a-f]+-trace\.json$/);
  const { traceEvents } = JSON.parse(await readFile(await file.path(), 'utf-8'));
  const lanes = traceEvents.filter((event: { name: string }) => event.name === 'process_name');
  expect(lanes.map((event: { args: { name: string } }) => event.args.name)).toEqual(['rank 0', 'rank 1']);

  const other = lab.cell(page, 1);
  await lab.runCell(page, other);
  await expect(other.summary).toContainText('ok');
  await expect(other.node.getByRole('button', { name: 'Download trace' })).toHaveCount(0);
});
