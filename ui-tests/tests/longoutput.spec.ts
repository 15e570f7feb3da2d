import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('a long output scrolls by keyboard, at its end while it grows', async ({ page }) => {
  lab.writeNotebook('long.ipynb', [
    'import time\nfor i in range(300):\n    print("line", i, "of", rank)\n    time.sleep(0.01)',
    'print("short")'
  ]);
  await lab.openNotebook(page, 'long.ipynb');
  const cell = lab.cell(page, 0);
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  const pane = cell.node.getByRole('tabpanel', { name: 'Folded' });
  // The end is visible, because the user has not scrolled.
  await expect(pane.getByText('line 299 of 1')).toBeInViewport();
  expect((await pane.boundingBox())!.height).toBeLessThan(700);

  const top = (): Promise<number> => pane.evaluate(node => node.scrollTop);
  await cell.node.getByRole('tab', { selected: true }).focus();
  await page.keyboard.press('Tab');
  // On a busy machine the cell takes long enough to have a button for its time, which comes first.
  const time = cell.node.getByRole('button', { name: 'Time', exact: true });
  if (await time.evaluateAll(found => found.includes(document.activeElement as HTMLElement))) {
    await page.keyboard.press('Tab');
  }
  await expect(pane).toBeFocused();
  await page.keyboard.press('Home');
  await expect.poll(top).toBe(0);
  await page.keyboard.press('PageDown');
  await expect.poll(top).toBeGreaterThan(0);
  const before = await top();
  await page.keyboard.press('ArrowDown');
  await expect.poll(top).toBeGreaterThan(before);
  // Still in this cell's output: the arrow was not the notebook's.
  await expect(pane).toBeFocused();

  const short = lab.cell(page, 1);
  await expect(short.summary).toContainText('ok');
  await expect(short.node.getByRole('tabpanel')).not.toHaveAttribute('tabindex');
});

test("JupyterLab's own scrolling of a cell takes over, and tabs stay visible", async ({ page }) => {
  lab.writeNotebook('scrolled.ipynb', [
    { source: 'for i in range(300): print("line", i, "of", rank)', metadata: { scrolled: true } }
  ]);
  await lab.openNotebook(page, 'scrolled.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  const area = cell.node.locator('.jp-Cell-outputArea');
  const pane = cell.node.getByRole('tabpanel');
  const overflow = (): Promise<string> => pane.evaluate(node => getComputedStyle(node).overflowY);
  await expect.poll(overflow).toBe('visible');
  await area.evaluate(node => node.scrollTo(0, node.scrollHeight));
  await expect(cell.node.getByText('line 299 of 1')).toBeInViewport();
  await expect(cell.tab('Rank 1, ok')).toBeInViewport();
  await lab.execute(page, 'notebook:disable-output-scrolling');
  await expect.poll(overflow).toBe('auto');
});
