/** A page on ranks is calm: one row above a short output, few controls, and nothing lost to who needs them. */
import { countControls, heightOf } from './controls';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, endSessions, shutdownAll, startGroup } from './ranks';

/** A header is one row, in pixels. */
const MAX_ROW = 28;
/** Controls of ours beside JupyterLab's own: 8 ranks, the sidebar open, one cell that has run. */
const MAX_CONTROLS = 18;

test.beforeAll(async ({ request }) => {
  await startGroup(request, 'two', 2);
  await startGroup(request, 'many', 32);
});
test.afterAll(({ request }) => shutdownAll(request));

test('the header of a short cell is one row at 2 and 32 ranks, and its tabs scroll to the last rank', async ({
  page
}) => {
  for (const [name, size] of [
    ['two', 2],
    ['many', 32]
  ] as const) {
    lab.writeNotebook('calm.ipynb', ['print("all")\nif rank % 2: raise ValueError("odd")'], lab.onRanks('all', name));
    await lab.openNotebook(page, 'calm.ipynb');
    const cell = await lab.runCell(page, 0);
    await expect(cell.summary).toContainText(size > 2 ? `${size / 2} ok` : 'rank 0 ok, rank 1 error');
    // The notebook's group is named in its toolbar.
    await expect(cell.summary).not.toContainText(name);
    const header = cell.node.locator('.jpd-Ranks-header');
    expect(await heightOf(header)).toBeLessThanOrEqual(MAX_ROW);
    expect(await cell.summary.evaluate(node => node.scrollWidth - node.clientWidth)).toBe(0); // the tabs give way
    await cell.tab('Folded').focus();
    await page.keyboard.press('End');
    const last = cell.tab(`Rank ${size - 1}`);
    await expect(last).toBeFocused();
    await expect(last).toBeInViewport();
    expect(await heightOf(header)).toBeLessThanOrEqual(MAX_ROW);
  }
});

test('eight ranks, the sidebar and a cell that has run show few controls', async ({ page, request }) => {
  await shutdownAll(request);
  await startGroup(request, 'eight', 8);
  lab.writeNotebook('calm.ipynb', ['print("all")'], lab.onRanks('all', 'eight'));
  await page.setViewportSize({ width: 1440, height: 900 });
  await lab.openNotebook(page, 'calm.ipynb');
  await command(page, 'jupyter-dist:show-sidebar');
  await expect(page.locator('.jpd-RankRow')).toHaveCount(8);
  const cell = await lab.runCell(page, 0);
  await expect(cell.summary).toContainText('8 ranks \u00b7 ok');
  await page.mouse.move(720, 800);
  await expect(async () => {
    const { ours, labels } = await countControls(page);
    expect(ours, labels.join(', ')).toBeLessThanOrEqual(MAX_CONTROLS);
  }).toPass();
  // What is quiet is there under the pointer, and by keyboard.
  const tabs = cell.node.getByRole('tablist');
  await expect(tabs).toHaveCSS('opacity', '0');
  await cell.ranks.hover();
  await expect(tabs).toHaveCSS('opacity', '1');
  await page.mouse.move(720, 800);
  await expect(tabs).toHaveCSS('opacity', '0');
  await cell.tab('Folded').focus();
  await expect(tabs).toHaveCSS('opacity', '1');
  await page.keyboard.press('ArrowRight');
  // Whoever looks at one rank sees which.
  await page.mouse.move(720, 800);
  await cell.editor.click();
  await expect(tabs).toHaveCSS('opacity', '1');
});

test('while ranks agree a cell looks as a kernel cell does, and its header comes with the first difference', async ({
  page,
  request
}) => {
  const sources = ['x = 1', 'print("hello")', 'x * 5', 'print("a\\nb" * 10)'];
  lab.writeNotebook('plain.ipynb', sources, {});
  await lab.openNotebook(page, 'plain.ipynb', { kernel: 'Python 3 (ipykernel)' });
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 3).node.locator('.jp-OutputArea-output')).toContainText('b');
  const heights = (): Promise<number[]> => Promise.all(sources.map((_, i) => heightOf(lab.cell(page, i).node)));
  const plain = await heights();
  await endSessions(request);

  await shutdownAll(request);
  await startGroup(request, 'four', 4);
  lab.writeNotebook(
    'agree.ipynb',
    [...sources, 'print("same")\nif rank == 2: print("other")', 'import time; time.sleep(3 if rank == 2 else 0)'],
    lab.onRanks('all', 'four')
  );
  await lab.openNotebook(page, 'agree.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  const [silent, hello, differs, late] = [0, 1, 4, 5].map(index => lab.cell(page, index));
  await expect(late.summary).toContainText('4 ranks \u00b7 ok');
  await page.mouse.move(720, 880);
  await expect.poll(heights).toEqual(plain);
  await expect(lab.cell(page, 2).node.locator('.jp-OutputPrompt')).toHaveText('[3]:');
  for (const cell of [silent, hello]) {
    await expect(cell.prompt).toHaveAttribute('title', /4 ranks \u00b7 ok/);
  }
  await expect(hello.ranks.locator('.jpd-Ranks-header')).toHaveCSS('opacity', '0');
  await expect(differs.ranks.locator('.jpd-Ranks-header')).toHaveCSS('opacity', '1');
  await expect(differs.prompt).not.toHaveAttribute('title', /ranks/);
  // Nothing was printed, and the time of one rank is news, also after the cell.
  await expect(late.ranks.locator('.jpd-Ranks-header')).toHaveCSS('opacity', '1');
  await expect(late.tab('Rank 2')).toContainText('s');
  await expect(late.summary).toContainText('4 ranks \u00b7 ok \u00b7 rank 2 took 3.');
  // The toolbar has no kernel; the status bar does not say it once more.
  await expect(page.locator('.jp-StatusBar-Left').getByText('No Kernel')).toBeHidden();
  const { words } = await countControls(page);
  expect(words).toBeLessThanOrEqual(150);

  // It is there under the pointer, and by keyboard also where nothing was printed.
  await hello.ranks.hover();
  await expect(hello.ranks.locator('.jpd-Ranks-header')).toHaveCSS('opacity', '1');
  await silent.tab('Folded').focus();
  await expect(silent.summary).toBeInViewport();
  await page.keyboard.press('ArrowRight');
  await expect(silent.tab('Rank 0')).toBeFocused();
});

test('the toolbar alone says that a notebook on ranks has no kernel, also after a reload', async ({ page }) => {
  lab.writeNotebook('kernelless.ipynb', ['print(1)'], lab.onRanks('all', 'two'));
  await lab.openNotebook(page, 'kernelless.ipynb');
  const said = page.locator('#jp-main-statusbar').getByText('No Kernel');
  await expect(said).toBeHidden();
  await lab.reload(page);
  await expect(lab.picker(page)).toBeVisible();
  await expect(said).toBeHidden();
});
