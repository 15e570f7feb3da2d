/** With jupyter-server-nbmodel: it provides the same cell executor. */
import { expect, test } from '@playwright/test';
import * as lab from '../tests/lab';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('rank cells go to ranks and kernel cells to the kernel', async ({ page }) => {
  const where = 'print(f"rank {rank}" if "rank" in globals() else "on the kernel")';
  lab.writeNotebook('where.ipynb', [where, { source: where, metadata: { jupyter_dist: { target: 'kernel' } } }], {
    ...lab.onRanks(),
    kernelspec: { name: 'python3', display_name: 'Python 3 (ipykernel)', language: 'python' }
  });
  await page.goto('/lab/tree/where.ipynb?reset');
  await lab.sessionReady(page);
  // It is there, and on.
  const hasRestorer = await page.evaluate(() => {
    const { jupyterapp } = window as unknown as { jupyterapp: { hasPlugin(id: string): boolean } };
    return jupyterapp.hasPlugin('@datalayer/jupyter-server-nbmodel:notebook-execution-restorer');
  });
  expect(hasRestorer).toBe(true);
  await expect(page.getByText('Python 3 (ipykernel) | Idle')).toBeVisible();
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 1).node.locator('.jp-OutputArea-output')).toHaveText('on the kernel\n');
  await expect(lab.cell(page, 0).items).toHaveText([/rank 0/, /rank 1/]);
});
