/** A console on ranks, beside a notebook and alone: one group for all tests. */
import type { Locator, Page } from '@playwright/test';
import { expect, test } from './fixtures';
import {
  cell,
  chooseAction,
  GROUP,
  layoutStored,
  openNotebook,
  openRanks,
  rootPath,
  runCell,
  shutdownGroup,
  startGroup,
  writeNotebook
} from './lab';
import { command, run } from './ranks';
import * as fs from 'fs';

test.beforeAll(({ request }) => startGroup(request));
test.afterAll(({ request }) => shutdownGroup(request));

interface IConsole {
  panel: Locator;
  prompt: Locator;
  cells: Locator;
  last: Locator;
  run(code: string): Promise<Locator>;
}

function consoleOf(page: Page): IConsole {
  const panel = page.locator('.jpd-Console');
  const prompt = panel.locator('.jp-CodeConsole-promptCell .cm-content');
  const cells = panel.locator('.jp-CodeConsole-content .jp-CodeCell');
  return {
    panel,
    prompt,
    cells,
    last: cells.last(),
    run: async code => {
      const number = await cells.count();
      await prompt.click();
      await prompt.fill(code);
      await page.keyboard.press('Shift+Enter');
      await expect(cells).toHaveCount(number + 1);
      return cells.nth(number);
    }
  };
}

/** The up arrow shows this cell first, once the console that got the focus has read the history. */
async function recalls(page: Page, code: string): Promise<void> {
  const { prompt } = consoleOf(page);
  await expect(async () => {
    await cell(page, 0).editor.click();
    await prompt.click();
    await prompt.fill('');
    await page.keyboard.press('ArrowUp');
    await expect(prompt).toContainText(code, { timeout: 1000 });
  }).toPass({ timeout: 60000 });
}

test('it is a console like those of kernels, on the ranks that are chosen', async ({ page, request }) => {
  writeNotebook('beside.ipynb', ['x = 40 + rank\nprint("from the notebook", x)']);
  await openNotebook(page, 'beside.ipynb');
  await runCell(page, 0, 'Shift+Enter');
  await expect(cell(page, 0).summary).toContainText('ok');
  await chooseAction(page, 'New console');
  const { panel, prompt, cells, run: runCode } = consoleOf(page);
  await expect(panel.getByRole('status')).toContainText(GROUP);
  await expect(prompt).toBeFocused();

  // Up: the cell of the notebook.
  await recalls(page, 'from the notebook');

  const first = await runCode('print("same")\nx + 2');
  await expect(first.locator('.jpd-Ranks-summary')).toContainText('ok');
  await expect(first.getByRole('tab', { name: 'Rank 1' })).toBeVisible();
  await expect(first.locator('.jpd-RankItem').first()).toContainText('same');
  await expect(first).toContainText('43');
  await expect(first.locator('.jp-InputPrompt')).toHaveText('[2]:');

  // Completion and documentation come from a rank.
  await prompt.fill('only_here_and_long = 1');
  await page.keyboard.press('Shift+Enter');
  await expect(cells.nth(1).locator('.jpd-Ranks-summary')).toContainText('ok');
  await prompt.pressSequentially('only_here_and');
  await page.keyboard.press('Tab');
  await expect(page.locator('.jp-Completer-item').filter({ hasText: 'only_here_and_long' }).first()).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(prompt).toContainText('only_here_and_long');
  await prompt.fill('torch.manual_seed');
  await page.keyboard.press('Shift+Tab');
  await expect(page.locator('.jp-Tooltip')).toContainText('seed for generating random numbers');
  await page.keyboard.press('Escape');
  await expect(page.locator('.jp-Tooltip')).toHaveCount(0);

  // Other ranks for the next cells.
  await (await openRanks(page, panel)).getByLabel('Rank 1, idle').click();
  await page.keyboard.press('Escape');
  await expect(prompt).toBeFocused();
  const one = await runCode('f"on {rank}"');
  await expect(one).toContainText('on 1');
  await expect(one).not.toContainText('on 0');

  // input() asks in it, and Enter is its own.
  const asks = await runCode('name = input("who? ")');
  const field = asks.getByLabel('who?');
  await field.fill('me');
  await field.press('Enter');
  await expect(asks).toContainText('who? me');
  await expect(asks.locator('.jpd-Ranks-summary')).toContainText('ok');

  // An interrupt ends it, and nothing else.
  const endless = await runCode('import time\nprint("endless", flush=True)\nwhile True: time.sleep(0.1)');
  await expect(endless).toContainText('endless');
  await panel.getByRole('button', { name: 'Interrupt' }).click();
  await expect(endless).toContainText('KeyboardInterrupt');
  await expect(endless.locator('.jp-InputPrompt')).not.toHaveText('[*]:');

  // What others run is in the history when one comes back.
  await run(request, GROUP, '"ran by another client"', { wait: true });
  await recalls(page, 'ran by another client');

  await panel.getByRole('button', { name: 'Clear' }).click();
  await expect(cells).toHaveCount(0);
});

test('selected text runs in it, from notebooks and files, on any ranks', async ({ page }) => {
  const { panel, cells } = consoleOf(page);
  writeNotebook('select.ipynb', ['if True:\n    print("one", rank)\n    print("two", rank)']);
  fs.writeFileSync(rootPath('part.py'), 'print("from a file", rank)\nprint("not this")\n');
  await openNotebook(page, 'select.ipynb');
  await cell(page, 0).editor.locator('.cm-line').nth(1).click();
  await command(page, 'jupyter-dist:run-selection');
  await expect(cells.nth(0).locator('.jpd-Ranks-summary')).toContainText('ok');
  await expect(cells.nth(0)).toContainText('one 1');
  // The cursor is on the next line.
  await command(page, 'jupyter-dist:run-selection-on');
  const dialog = page.getByRole('dialog').filter({ hasText: 'Run on ranks of train' });
  await dialog.locator('input').fill('1');
  await dialog.getByRole('button', { name: 'Run' }).click();
  await expect(cells.nth(1)).toContainText('two 1');
  await expect(cells.nth(1)).not.toContainText('two 0');
  await expect(cell(page, 0).ranks).toHaveCount(0);

  await command(page, 'docmanager:open', { path: 'part.py' });
  await page.locator('.jp-FileEditor .cm-line').first().click();
  await page.locator('.jp-FileEditor .cm-line').first().click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Run Selected Text or Current Line on Ranks', exact: true }).click();
  await expect(cells.nth(2)).toContainText('from a file 0');
  await expect(panel).not.toContainText('not this');
});

test('it survives a reload, with its cells, and offers its group when that is gone', async ({ page, request }) => {
  const opened = consoleOf(page);
  writeNotebook('beside.ipynb', ['1']);
  await openNotebook(page, 'beside.ipynb');
  await command(page, 'jupyter-dist:open-console', { group: GROUP });
  await expect(opened.prompt).toBeFocused();
  const before = await opened.run('print("before the reload")');
  await expect(before.locator('.jpd-Ranks-summary')).toContainText('ok');
  // Another user of the server, who names this console.
  const notebook = (await opened.panel.getAttribute('id'))!.replace('jupyter-dist-', '');
  const code = `from IPython.display import HTML\nHTML('foreign <img src=x onerror="window.attacked = true">')`;
  const url = `/jupyter-dist/api/groups/${GROUP}/executions`;
  expect((await request.post(url, { data: { code, ranks: 'all', notebook, cell_id: 'foreign' } })).status()).toBe(202);
  const asks = await opened.run('answer = input("still there? ")');
  await expect(asks.getByLabel('still there?')).toBeVisible();
  await layoutStored(page, `jupyter-dist-console:${notebook}`);
  await page.reload();
  const { panel, cells, prompt } = opened;
  await expect(cells.nth(0)).toContainText('before the reload');
  await expect(cells.nth(1)).toContainText('HTML');
  await expect(cells.nth(2).locator('.jp-InputPrompt')).toHaveText('[*]:');
  await expect(cells.nth(2).getByLabel('still there?')).toBeVisible();
  await cells.nth(2).getByLabel('still there?').fill('yes');
  await cells.nth(2).getByLabel('still there?').press('Enter');
  await expect(cells.nth(2).locator('.jpd-Ranks-summary')).toContainText('ok');
  expect(await page.evaluate(() => 'attacked' in window)).toBe(false);

  await shutdownGroup(request);
  await expect(panel.getByRole('status').first()).toContainText('not running');
  await prompt.click();
  await prompt.fill('print("again", rank)');
  await page.keyboard.press('Shift+Enter');
  await expect(opened.last).toContainText('There is no group');
  await panel.getByRole('button', { name: /^Start train/ }).click();
  await expect(panel.getByRole('button', { name: 'Ranks for the next cell: 0-1 (2 of 2)' })).toBeVisible();
  await expect(await opened.run('print("again", rank)')).toContainText('again 1');
});
