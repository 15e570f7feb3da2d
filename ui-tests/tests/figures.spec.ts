/** Figures of several ranks side by side, enlarged, and as files. */
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request, 4));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const SHOW = `
from IPython.display import HTML, SVG, display
def figure(color): return SVG(f'<svg xmlns="http://www.w3.org/2000/svg" width="400" height="300"><rect width="400" height="300" fill="{color}"/></svg>')
print("before")
display(figure(["red", "green", "blue", "gray"][rank]))
display(HTML(f"<table><tr><th>rank</th><td>{rank // 2}</td></tr></table>"))
print("after")
display(figure("black"))
`;

test.describe(() => {
  test.use({ ownPage: true }); // a reload opens what the page had open when it last saved that

  test('stand side by side, and are enlarged by click and by keyboard', async ({ page }) => {
    lab.writeNotebook('figures.ipynb', [SHOW]);
    await lab.openNotebook(page, 'figures.ipynb');
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    await expect(cell.summary).toContainText('4 ranks \u00b7 ok');

    const rows = cell.node.locator('.jpd-SideBySide');
    await expect(rows).toHaveCount(2);
    const figures = rows.first().locator('.jpd-RankItem');
    await expect(figures.locator('.jpd-RankItem-ranks')).toHaveText(['rank 0', 'rank 1', 'rank 2', 'rank 3']);
    await expect(rows.last().locator('.jpd-RankItem-ranks')).toHaveText(['ranks 0-1', 'ranks 2-3']);
    const tops = await figures.evaluateAll(nodes => nodes.map(node => node.getBoundingClientRect().top));
    expect(tops[1]).toBe(tops[0]);
    // An equal figure is there once, below the text that follows.
    const last = cell.items.last();
    await expect(last.locator('.jpd-RankItem-ranks')).toHaveText('ranks 0-3');
    await expect(cell.node.locator('.jp-RenderedSVG')).toHaveCount(5);

    // By click, and on to the next ranks.
    await figures.nth(1).locator('.jp-RenderedSVG').click();
    const large = page.getByRole('dialog');
    await expect(large).toHaveAccessibleName('rank 1');
    await expect(large.getByRole('status')).toHaveText('rank 1 (2 of 4)');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await expect(large.getByRole('status')).toHaveText('rank 3 (4 of 4)');
    await page.keyboard.press('ArrowRight');
    await expect(large.getByRole('status')).toHaveText('rank 0 (1 of 4)');
    const small = (await figures.first().boundingBox())!.width;
    expect((await large.locator('.jp-RenderedSVG').boundingBox())!.width).toBeGreaterThan(small);
    await page.screenshot({ path: test.info().outputPath('large.png') });
    await page.keyboard.press('Escape');
    await expect(large).toHaveCount(0);

    // By keyboard: the focus comes back to the button.
    const button = figures.nth(2).getByRole('button', { name: 'Enlarge' });
    await button.focus();
    await page.keyboard.press('Enter');
    await expect(large).toHaveAccessibleName('rank 2');
    await page.keyboard.press('Home');
    await expect(large).toHaveAccessibleName('rank 0');
    await page.keyboard.press('Escape');
    await expect(large).toHaveCount(0);
    await expect(button).toBeFocused();

    // One that stands alone has no others.
    await last.locator('.jp-RenderedSVG').click();
    await expect(large.getByRole('status')).toHaveText('ranks 0-3');
    await expect(large.getByRole('button')).toHaveText(['\u2715']);
    await large.getByRole('button', { name: 'Close' }).click();
    await expect(large).toHaveCount(0);

    // Saved and opened again, they stand as before.
    await lab.saveNotebook(page);
    await lab.reload(page);
    await expect(rows.first().locator('.jpd-RankItem-ranks')).toHaveText(['rank 0', 'rank 1', 'rank 2', 'rank 3']);
  });
});

test('the output of a rank is copied, and saved as text and files', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  lab.writeNotebook('files.ipynb', [SHOW, 'print("\\x1b[31mred\\x1b[0m", rank)\n1 / rank']);
  await lab.openNotebook(page, 'files.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  const cell = lab.cell(page, 0);
  const failed = lab.cell(page, 1);
  await expect(failed.summary).toContainText('error');
  await expect(cell.node.getByRole('button', { name: 'Download' })).toBeHidden();

  await failed.tab('Rank 0').click();
  await failed.node.getByRole('button', { name: 'Copy' }).click();
  await expect(failed.node.getByRole('button', { name: 'Copied' })).toBeVisible();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toMatch(/^red 0\n[^]*ZeroDivisionError: division by zero\n$/);
  const [text] = await Promise.all([
    page.waitForEvent('download'),
    failed.node.getByRole('button', { name: 'Download' }).click()
  ]);
  expect(text.suggestedFilename()).toBe('rank-0.txt');
  expect(fs.readFileSync((await text.path())!, 'utf8')).toBe(copied);

  await cell.tab('Rank 2').click();
  await cell.node.getByRole('button', { name: 'Download' }).click();
  const entries = page.locator('.lm-Menu').getByRole('menuitem');
  await expect(entries).toHaveText([
    'All 4 files',
    'rank-2.txt',
    'rank-2-figure-1.svg',
    'rank-2-figure-2.html',
    'rank-2-figure-3.svg'
  ]);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  const [figure] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
  expect(figure.suggestedFilename()).toBe('rank-2-figure-1.svg');
  expect(fs.readFileSync((await figure.path())!, 'utf8')).toContain('fill="blue"');
  await expect(cell.node.getByRole('button', { name: 'Download' })).toBeFocused();
});
