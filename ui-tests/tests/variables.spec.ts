/** The panel with the variables of ranks. */
import { Locator, Page } from '@playwright/test';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import { cell, newPath, openNotebook, runCell, writeNotebook } from './lab';
import { chooseInCard, command, openLab, run, shutdownAll, startGroup } from './ranks';

const MODEL = `
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
if rank == 1:
    model[2].bias.data[0] = 3.0
steps = 100 + rank
class Broken:
    def __repr__(self): raise SystemExit("it was called")
broken, same = Broken(), 5
partly = {'a': torch.ones(2), 'm': torch.empty(2, device='meta')}`;

/** Runs until the file is there. */
const untilFile = (path: string): string =>
  `import pathlib, time\nwhile not pathlib.Path(${JSON.stringify(path)}).exists(): time.sleep(0.05)\nlate = 1`;

test.beforeEach(async ({ page, request }) => {
  await shutdownAll(request);
  await startGroup(request, 'train', 2);
  await openLab(page);
});

test.afterAll(async ({ request }) => shutdownAll(request));

const panel = (page: Page): Locator => page.getByRole('tabpanel', { name: 'Variables: train' });
const variable = (page: Page, name: string): Locator => panel(page).locator(`tbody[data-name="${name}"]`);

/** The requests that the page makes for variables and comparisons. */
function requests(page: Page): string[] {
  const seen: string[] = [];
  page.on('request', request => {
    const path = new URL(request.url()).pathname;
    if (/\/(variables|compare)$/.test(path)) {
      seen.push(path.split('/').pop()!);
    }
  });
  return seen;
}

test('finds a desynchronised model in three clicks', async ({ page, request }) => {
  await run(request, 'train', MODEL, { wait: true });
  await command(page, 'jupyter-dist:show-sidebar');
  await chooseInCard(page, 'train', 'Show Variables of Ranks');
  await panel(page).getByRole('button', { name: 'Compare model between ranks' }).click();

  const found = variable(page, 'model');
  await expect(found.getByRole('status')).toContainText('model: 1 of 4 tensors differs, 3 are equal.');
  const row = found.getByRole('table', { name: 'Parts of model that differ' }).getByRole('row').nth(1);
  await expect(row).toContainText('2.bias');
  await expect(row).toContainText('1 of 2');
  await expect(row).toContainText(/rank [01]/);
  await page.getByRole('button', { name: 'Close the comparison of model' }).click();
  // What is not compared is not called equal.
  await panel(page).getByRole('button', { name: 'Compare partly between ranks' }).click();
  await expect(variable(page, 'partly').getByRole('status')).toContainText('1 part was not compared.');
  await expect(
    variable(page, 'partly').getByRole('list', { name: 'Parts of partly that were not compared' })
  ).toContainText('m on ranks 0-1 was not compared: it is on the meta device, without numbers.');
  await expect(found.getByRole('status')).toHaveCount(0);
});

test('checks all that a model trains with, on request', async ({ page, request }) => {
  const code = `${MODEL}\nopt = torch.optim.SGD(model.parameters(), lr=0.1 * (1 + rank))`;
  await run(request, 'train', code, { wait: true });
  await command(page, 'jupyter-dist:open-variables', { group: 'train' });
  await panel(page).getByRole('button', { name: 'Check the training of model on all ranks' }).click();
  await expect(variable(page, 'model').getByRole('status')).toContainText(
    /\d other values? differs?\. Compared .* on ranks 0-1/
  );
  const parts = variable(page, 'model').getByRole('table', { name: 'Parts of model that differ' });
  const rate = parts.getByRole('row', { name: 'opt.param_groups.0.lr' });
  await expect(rate).toContainText('0.1');
  await expect(rate).toContainText('0.2');
});

test('colors only what differs, filters, sorts, and works by keyboard', async ({ page, request }) => {
  await run(request, 'train', MODEL, { wait: true });
  await run(request, 'train', 'only = torch.zeros(1000)', { ranks: '0', wait: true });
  await command(page, 'jupyter-dist:open-variables', { group: 'train' });
  await expect(variable(page, 'steps').locator('.jpd-mod-differs')).toHaveText(['100', '101']);
  await expect(variable(page, 'only').locator('.jpd-mod-differs')).toHaveText(['not defined']);
  for (const equal of ['model', 'same', 'broken']) {
    await expect(variable(page, equal)).toContainText('ranks 0-1');
    await expect(variable(page, equal).locator('.jpd-mod-differs')).toHaveCount(0);
  }
  // The field has the focus.
  await page.keyboard.type('step');
  await expect(panel(page).locator('tbody')).toHaveCount(1);
  await page.keyboard.press('Escape');
  await expect(variable(page, 'same')).toBeVisible();
  const bytes = panel(page).getByRole('button', { name: 'Bytes' });
  await bytes.focus();
  await page.keyboard.press('Enter');
  await expect(panel(page).locator('tbody').first()).toHaveAttribute('data-name', 'only');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('button', { name: 'Compare only between ranks' })).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(variable(page, 'model').getByRole('status')).toContainText('1 of 4 tensors differs');
  await panel(page).getByRole('button', { name: 'Compare only between ranks' }).click();
  await expect(variable(page, 'only').getByRole('status')).toHaveText(
    'only: only on rank 0, so there is nothing to compare.'
  );
  await panel(page).getByLabel('Only what differs').check();
  await expect(panel(page).locator('.jpd-Variable')).toHaveCount(2);
});

test('asks nothing while a cell runs or the panel is hidden, and again afterwards', async ({ page, request }) => {
  const seen = requests(page);
  const goOn = newPath('go-on');
  await run(request, 'train', 'steps = 7', { wait: true });
  await command(page, 'jupyter-dist:open-variables', { group: 'train' });
  await expect(variable(page, 'steps')).toContainText('7');
  const status = panel(page).locator('.jpd-Variables-status');
  await expect(status).toContainText('none differs between ranks');

  await run(request, 'train', untilFile(goOn));
  await expect(status).toContainText('Busy: ranks run a cell. These are the variables of');
  await expect(panel(page).getByRole('button', { name: 'Refresh the variables' })).toBeDisabled();
  await expect(variable(page, 'steps')).toContainText('7');
  const asked = seen.length;
  await page.waitForTimeout(1500); // nothing is to happen in this time
  expect(seen.length).toBe(asked);
  fs.writeFileSync(goOn, '');
  await expect(variable(page, 'late')).toContainText('ranks 0-1');
  await expect(status).toContainText('none differs between ranks');
  await panel(page).getByRole('button', { name: 'Refresh the variables' }).click();

  await command(page, 'launcher:create');
  // JupyterLab 4.7 hides it by its content's visibility.
  const inside = panel(page).locator('.jpd-Variables-status');
  await expect
    .poll(() => inside.evaluateAll(nodes => nodes.filter(node => node.checkVisibility())).then(seen => seen.length))
    .toBe(0);
  const shown = seen.length;
  await run(request, 'train', 'hidden = 1', { wait: true });
  await page.waitForTimeout(1500);
  expect(seen.length).toBe(shown);
  await command(page, 'jupyter-dist:open-variables', { group: 'train' });
  await expect(variable(page, 'hidden')).toContainText('ranks 0-1');

  await shutdownAll(request);
  await expect(status).toContainText('The group has ended.');
});

test('watches values while a cell runs, from the menu of the cell, too', async ({ page, request }) => {
  const goOn = newPath('go-on');
  const code = [
    'import os, time',
    'scale = 0.5 + rank',
    'def train(stop):',
    '    step = 0',
    '    while not os.path.exists(stop):',
    '        step += 1',
    '        time.sleep(0.05)'
  ].join('\n');
  await run(request, 'train', code, { wait: true });
  writeNotebook('watch.ipynb', [`train(${JSON.stringify(goOn)})`]);
  await openNotebook(page, 'watch.ipynb');
  await runCell(page, 0);
  await command(page, 'jupyter-dist:open-variables', { group: 'train' });
  const watch = panel(page).getByRole('region', { name: 'Watch' });
  const value = (name: string): Locator => watch.getByRole('row', { name: new RegExp(`^${name} `) });
  // Of the function that runs, without a name.
  await expect(value('step').first()).toContainText('train, line');
  const before = await value('step').first().textContent();
  await expect(value('step').first()).not.toHaveText(before!);
  await watch.getByRole('textbox').fill('scale, nothing');
  await expect(value('scale')).toHaveCount(2);
  await expect(value('scale').locator('.jpd-mod-differs')).toHaveText(['0.5', '1.5']);
  await expect(watch).toContainText('nothing is not there on ranks 0-1.');
  // The name at the cursor of the cell.
  const line = cell(page, 0).editor.locator('.cm-line');
  await line.click({ position: { x: 12, y: 6 } });
  await line.click({ button: 'right', position: { x: 12, y: 6 } });
  await page.getByRole('menuitem', { name: 'Watch train on Ranks' }).click();
  await expect(watch.getByRole('textbox')).toHaveValue('scale, nothing, train');
  await expect(value('train')).toContainText('function');
  fs.writeFileSync(goOn, '');
  await expect(panel(page).locator('.jpd-Variables-status')).toContainText('differs between ranks');
  await expect(value('scale')).toHaveCount(2);
});
