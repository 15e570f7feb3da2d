/** JupyterLab's restart commands in a notebook on ranks, and its question for a kernel. */
import { Page } from '@playwright/test';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { run } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const KERNEL = 'Python 3 (ipykernel)';
const MARKER = 'print("stale" if "marker" in globals() else "clean"); marker = 1';
const KERNEL_MARKER = { source: MARKER, metadata: { jupyter_dist: { target: 'kernel' } } };

interface ILabSession {
  jupyterapp: { shell: { currentWidget: { sessionContext: { restartKernel(): Promise<void> } } } };
}

function dialog(page: Page) {
  return page.getByRole('dialog').filter({ hasText: "Restart the 2 ranks of 'train'?" });
}

test('Restart and Run All restarts the ranks, and asks for no kernel before and after', async ({ page }) => {
  lab.writeNotebook('restart.ipynb', [MARKER, 'print("begun")\nold = True']);
  await lab.openNotebook(page, 'restart.ipynb');
  const [marker, last] = [lab.cell(page, 0), lab.cell(page, 1)];
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(last.summary).toContainText('ok');
  await expect(marker.items).toHaveText([/clean/]);
  await lab.execute(page, 'notebook:run-cell');
  await lab.runCell(page, marker);
  await expect(marker.items).toHaveText([/stale/]);
  // A cell that runs is ended, and stops none of those that are run after it.
  await last.editor.click();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('import time; print("begun"); time.sleep(1000 if "old" in globals() else 0)');
  await page.keyboard.press('Control+Enter');
  await expect(last.items).toHaveText([/begun/]);
  await page.locator('[data-jp-item-name="restart-and-run"]').click();
  await expect(dialog(page)).toContainText('Their variables will be lost.');
  await expect(dialog(page).getByRole('checkbox')).toHaveCount(0);
  await dialog(page).getByRole('button', { name: 'Restart' }).click();
  await expect(marker.items).toHaveText([/clean/]);
  await expect(last.summary).toContainText('ok');
  await lab.reload(page);
  await lab.saveNotebook(page);
  // For papermill and nbconvert; opened in JupyterLab, it starts no kernel.
  expect(lab.readNotebook('restart.ipynb').metadata.kernelspec).toMatchObject({ name: 'ranks' });
  await lab.reload(page);
  await expect(page.locator('.jp-Toolbar-kernelName')).toHaveText('No Kernel');
});

test('the kernel is restarted as well where it is ticked, and alone where the notebook is on it', async ({
  page,
  request
}) => {
  await run(request, lab.GROUP, 'marker = 1', { wait: true });
  lab.writeNotebook('both.ipynb', [MARKER, KERNEL_MARKER], {
    ...lab.onRanks(),
    kernelspec: { name: 'python3', display_name: KERNEL, language: 'python' }
  });
  await page.goto('/lab/tree/both.ipynb?reset');
  await expect(page.getByText(`${KERNEL} | Idle`)).toBeVisible();
  const [onRanks, onKernel] = [lab.cell(page, 0), lab.cell(page, 1)];
  const expectWords = async (ranks: RegExp, kernel: RegExp): Promise<void> => {
    await expect(onRanks.items).toHaveText([ranks]);
    await expect(onKernel.node.locator('.jp-OutputArea-output')).toHaveText(kernel);
  };
  await lab.execute(page, 'notebook:run-all-cells');
  await expectWords(/stale/, /clean/);
  await lab.execute(page, 'notebook:restart-run-all');
  // A cell goes to the kernel, so that it is ticked.
  const box = dialog(page).getByRole('checkbox', { name: 'Also restart the kernel' });
  await expect(box).toBeChecked();
  await box.uncheck({ force: true });
  await dialog(page).getByRole('button', { name: 'Restart' }).click();
  await expectWords(/clean/, /stale/);
  await lab.execute(page, 'notebook:restart-run-all');
  await dialog(page).getByRole('button', { name: 'Restart' }).click();
  await expectWords(/clean/, /clean/);
});

test('Restart cancels the rank cells that wait for a kernel cell', async ({ page }) => {
  const file = lab.newPath('not-to-be-written');
  const begun = lab.newPath('kernel-cell-begun');
  const onKernel = {
    source: `import time; open(${JSON.stringify(begun)}, "w").close(); time.sleep(1000)`,
    metadata: { jupyter_dist: { target: 'kernel' } }
  };
  lab.writeNotebook('waits.ipynb', [onKernel, `open(${JSON.stringify(file)}, "w").close()`, MARKER], {
    ...lab.onRanks(),
    kernelspec: { name: 'python3', display_name: KERNEL, language: 'python' }
  });
  await page.goto('/lab/tree/waits.ipynb?reset');
  await expect(page.getByText(`${KERNEL} | Idle`)).toBeVisible();
  const marker = lab.cell(page, 2);
  // As other extensions restart it.
  const restartKernel = (): Promise<void> =>
    page.evaluate(() =>
      (window as unknown as ILabSession).jupyterapp.shell.currentWidget.sessionContext.restartKernel()
    );
  for (const restarted of ['both', 'kernel', 'ranks']) {
    await lab.execute(page, 'notebook:run-all-cells');
    await expect.poll(() => fs.existsSync(begun)).toBe(true);
    await expect(marker.prompt).toHaveText('[*]:');
    if (restarted === 'kernel') {
      await restartKernel();
    } else {
      await page.locator('[data-jp-item-name="restart"]').click();
      const box = dialog(page).getByRole('checkbox', { name: 'Also restart the kernel' });
      await expect(box).toBeChecked();
      await box.setChecked(restarted === 'both', { force: true });
      await dialog(page).getByRole('button', { name: 'Restart' }).click();
    }
    await expect(marker.prompt).toHaveText('[ ]:');
    await expect(lab.cell(page, 0).prompt).toHaveText(restarted === 'ranks' ? '[*]:' : '[ ]:');
    fs.rmSync(begun);
  }
  await restartKernel();
  await expect(lab.cell(page, 0).prompt).toHaveText('[ ]:');
  // One that is run now runs after what was wrongly sent before.
  await lab.runCell(page, marker);
  await expect(marker.items).toHaveText([/clean/]);
  expect(fs.existsSync(file)).toBe(false);
});

test('a group that is not running is named, and Cancel restarts nothing', async ({ page }) => {
  lab.writeNotebook('absent.ipynb', [MARKER], lab.onRanks('all', 'absent'));
  await lab.openNotebook(page, 'absent.ipynb');
  await page.locator('[data-jp-item-name="restart"]').click();
  const none = page.getByRole('dialog').filter({ hasText: "Group 'absent' is not running" });
  await none.getByRole('button', { name: 'Close' }).click();
  await lab.chooseTarget(page, lab.GROUP);
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText('ok');
  await page.locator('[data-jp-item-name="restart"]').click();
  await dialog(page).getByRole('button', { name: 'Cancel' }).click();
  await lab.runCell(page, cell);
  await expect(cell.items).toHaveText([/stale/]);
});
