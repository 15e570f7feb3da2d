/** Numbers with a name that recur are charts in a tab of the cell. */
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const TRAIN = `
import time
for step in range(40):
    print(f"step {step}  loss {1 / (step + 1) + rank:.4f}  lr {1e-3 * 0.9**step:.2e}")
    time.sleep(0.05)
track(exact=1 / 3, step=1); track(exact=2 / 3, step=2); track(exact=rank + 0.25, step=5)
`;

test('a training loop of two ranks', async ({ page }) => {
  lab.writeNotebook('curves.ipynb', [TRAIN, 'print("no numbers here")']);
  await lab.openNotebook(page, 'curves.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  const train = lab.cell(page, 0);
  const plain = lab.cell(page, 1);
  // While it runs.
  await train.tab('Curves').click();
  const loss = train.node.locator('figure', { hasText: 'loss' });
  await expect(loss.locator('canvas')).toBeVisible();
  await expect(plain.summary).toContainText('2 ranks \u00b7 ok');
  await expect(plain.tab('Curves')).toHaveCount(0);
  await expect(train.summary).toContainText('2 ranks \u00b7 ok');

  await expect(train.node.locator('figure')).toHaveCount(3);
  await expect(loss.locator('figcaption')).toHaveText('step 39 \u00b7 0.525 \u00b7 0.025 \u2026 1.025');
  await expect(train.node.locator('figure', { hasText: 'exact' }).locator('figcaption')).toContainText(
    'step 5 \u00b7 0.75'
  );

  // By keyboard: to the line of rank 1, and along the chart.
  await train.tab('Curves').focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowRight');
  const second = train.node.getByRole('button', { name: 'Line of rank 1' });
  await expect(second).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(second).toHaveAttribute('aria-pressed', 'true');
  await expect(loss.locator('figcaption')).toContainText('rank 1: 1.025');
  await loss.getByRole('img').focus();
  await page.keyboard.press('Home');
  await expect(loss.locator('figcaption')).toContainText('step 0 \u00b7 1.5 \u00b7 1 \u2026 2 \u00b7 rank 1: 2');

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    train.node.getByRole('button', { name: 'Save as CSV' }).click()
  ]);
  expect(download.suggestedFilename()).toBe('curves.csv');
  const rows = fs
    .readFileSync((await download.path())!, 'utf8')
    .trim()
    .split('\n');
  expect(rows).toHaveLength(1 + 2 * (40 + 40 + 3));
  expect(rows).toContain('loss,1,1,1.5,1.5,1.5');
  expect(rows).toContain('exact,2,0,0.6666666666666666,0.6666666666666666,0.6666666666666666');

  // After a reload they are there, too.
  await lab.saveNotebook(page);
  await lab.reload(page);
  await train.tab('Curves').click();
  await expect(loss.locator('figcaption')).toHaveText('step 39 \u00b7 0.525 \u00b7 0.025 \u2026 1.025');
});

test('variables, timeline and curves are tabs of one pane, keep what was chosen, and Escape goes back to the notebook', async ({
  page
}) => {
  const train = 'for step in range(5): print(f"step {step} loss {1 / (step + 1):.3f}")';
  lab.writeNotebook('panes.ipynb', [
    train,
    'print("no numbers")',
    'for step in range(4): print(f"acc {step / 3:.2f}")'
  ]);
  await lab.openNotebook(page, 'panes.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 2).summary).toContainText('2 ranks \u00b7 ok');
  const panel = (kind: string) => page.getByRole('tabpanel', { name: `${kind}: ${lab.GROUP}` });
  const isInNotebook = () => page.evaluate(() => document.activeElement?.closest('.jp-NotebookPanel') !== null);

  await lab.chooseAction(page, 'Variables');
  const filter = panel('Variables').getByLabel('Filter by name or type');
  await expect(filter).toBeFocused();
  await page.keyboard.type('step');
  await lab.chooseAction(page, 'Timeline');
  await expect(panel('Timeline').getByRole('group', { name: `Timeline of ${lab.GROUP}` })).toBeFocused();
  const first = lab.cell(page, 0);
  await first.tab('Curves').click();
  await first.node.getByRole('button', { name: 'Open in a tab' }).click();
  const curves = panel('Curves');
  const cells = curves.getByLabel('Cell', { exact: true });
  await expect(cells).toBeFocused();
  await expect(curves.locator('.jpd-Curve-title')).toHaveText(['loss']);
  await expect(panel('Timeline').getByRole('group', { name: `Timeline of ${lab.GROUP}` })).toBeHidden();
  const tabs = page.locator('.lm-TabBar').filter({ hasText: 'Variables: train' }).locator('.lm-TabBar-tabLabel');
  await expect(tabs).toHaveText(['Variables: train', 'Timeline: train', 'Curves: train']);

  // The last cell with curves, which a cell without any does not replace.
  await cells.selectOption('Last cell with curves');
  await expect(curves.locator('.jpd-Curve-title')).toHaveText(['acc']);
  await page.keyboard.press('Escape');
  await expect.poll(isInNotebook).toBe(true);
  await lab.runCell(page, 1);
  await expect(curves.locator('.jpd-Curve-title')).toHaveText(['acc']);
  await lab.runCell(page, 0);
  await expect(curves.locator('.jpd-Curve-title')).toHaveText(['loss']);

  // Back at the first tab, with what was typed; a field with text is cleared first.
  await command(page, 'jupyter-dist:open-variables');
  await expect(filter).toBeFocused();
  await expect(filter).toHaveValue('step');
  await page.keyboard.press('Escape');
  await expect(filter).toHaveValue('');
  await page.keyboard.press('Escape');
  await expect.poll(isInNotebook).toBe(true);
  // What was hidden and is shown again is read anew, and each line counts once.
  await command(page, 'jupyter-dist:open-curves');
  await expect(cells).toBeFocused();
  const { prompt } = lab.cell(page, 1);
  const count = await prompt.innerText();
  await lab.runCell(page, 1);
  await expect(prompt).toHaveText(/\d/);
  await expect(prompt).not.toHaveText(count);
  await expect(curves.locator('figcaption')).toContainText('step 4');
  // The lanes let go what is pointed at, and then the focus.
  await command(page, 'jupyter-dist:open-timeline');
  await expect(panel('Timeline').getByRole('group', { name: `Timeline of ${lab.GROUP}` })).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await expect.poll(isInNotebook).toBe(true);
});
