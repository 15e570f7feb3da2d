import { Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { endSessions } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(async ({ request }) => {
  await endSessions(request, 'inspect.ipynb');
  await lab.shutdownGroup(request);
});

async function ask(page: Page, index: number): Promise<void> {
  await lab.cell(page, index).editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.press('Shift+Tab');
}

test('Shift+Tab and completion of a rank cell come from its first rank, without a kernel and beside one', async ({
  page
}) => {
  lab.writeNotebook('inspect.ipynb', [
    'def scaled(x, *, by=2):\n    "Multiply on a rank."\n    return x * by',
    'scaled(',
    'scal',
    'import time\nprint("begun", flush=True)\ntime.sleep(1000)'
  ]);
  await lab.openNotebook(page, 'inspect.ipynb');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).summary).toContainText('2 ranks \u00b7 ok');
  const tooltip = page.locator('.jp-Tooltip');
  await ask(page, 1);
  await expect(tooltip).toContainText('scaled(x, *, by=2)');
  await expect(tooltip).toContainText('Multiply on a rank.');
  await page.keyboard.press('Escape');

  await lab.cell(page, 2).editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.press('Tab');
  const item = page.locator('.jp-Completer-item').filter({ hasText: 'scaled' });
  await expect(item).toContainText('function\u00a0\u00b7\u00a0rank\u00a00');
  await page.keyboard.press('Escape');

  // Beside a kernel, which does not know the name; the rank is busy, and says what it can.
  await lab.execute(page, 'notebook:change-kernel');
  const dialog = page.getByRole('dialog').filter({ hasText: 'Select Kernel' });
  await dialog.locator('select').selectOption({ label: 'Python 3 (ipykernel)' });
  await dialog.locator('.jp-mod-accept').click();
  await expect(page.getByText('Python 3 (ipykernel) | Idle')).toBeVisible();
  const busy = lab.cell(page, 3);
  await lab.runCell(page, busy);
  await expect(busy.node).toContainText('begun');
  await ask(page, 1);
  await expect(tooltip).toContainText('Multiply on a rank.');
  await expect(tooltip).toContainText('This rank is running a cell.');
  await page.keyboard.press('Escape');
  await lab.execute(page, 'notebook:interrupt-kernel');
  await expect(busy.summary).toContainText('interrupted');
});

test('Contextual Help comes from the first rank, without a kernel and for a console, also while it runs a cell', async ({
  page
}) => {
  const code = 'def halved(x):\n    f"""."""\n    return x / 2\nhalved.__doc__ = f"Halve on rank {rank}."';
  lab.writeNotebook(
    'help.ipynb',
    [code, 'halved', 'import time\nprint("begun", flush=True)\ntime.sleep(1000)'],
    lab.onRanks('1')
  );
  await lab.openNotebook(page, 'help.ipynb');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).summary).toContainText('ok');
  await lab.execute(page, 'inspector:open');
  const help = page.locator('.jp-Inspector');
  await expect(help).toBeVisible();
  const at = async (index: number): Promise<void> => {
    await lab.cell(page, index).editor.click();
    await page.keyboard.press('Control+End');
  };
  await at(1);
  await expect(help).toContainText('halved(x)');
  await expect(help).toContainText('Halve on rank 1.');

  // A rank that runs a cell answers at once, and again when it has ended.
  await at(2);
  await page.keyboard.press('Control+Enter');
  await expect(lab.cell(page, 2).node).toContainText('begun');
  await at(1);
  await expect(help).toContainText('This rank is running a cell.');
  await lab.execute(page, 'notebook:interrupt-kernel');
  await expect(lab.cell(page, 2).summary).toContainText('interrupted');
  await expect(help).not.toContainText('This rank is running a cell.');
  await expect(help).toContainText('Halve on rank 1.');

  // In a console, of the ranks that are chosen there.
  await lab.chooseAction(page, 'New console');
  const prompt = page.locator('.jpd-Console .jp-CodeConsole-promptCell .cm-content');
  await expect(prompt).toBeFocused();
  await prompt.pressSequentially('rank');
  await expect(help).toContainText('int');
  await expect(help).not.toContainText('Halve on rank 1.');
  await prompt.fill('');
  await prompt.pressSequentially('halved');
  await expect(help).toContainText('Halve on rank 1.');
});
