/**
 * How much a page shows: a cell on 2, 8 and 32 ranks beside a kernel cell with the same output, at 1280 and 1440 px. The
 * table is printed and, with COUNTS=<folder>, written there with pictures in light and dark.
 */
import * as fs from 'fs';
import * as path from 'path';
import { countControls, heightOf } from '../tests/controls';
import { expect, test } from '../tests/fixtures';
import * as lab from '../tests/lab';
import { command, endSessions, shutdownAll, startGroup } from '../tests/ranks';

const WIDTHS = [1280, 1440];
const OUT = process.env.COUNTS;

test.afterAll(({ request }) => shutdownAll(request));

for (const ranks of [0, 2, 8, 32]) {
  test(ranks === 0 ? 'a kernel cell' : `a cell on ${ranks} ranks`, async ({ page, request }) => {
    const name = ranks === 0 ? 'kernel' : `ranks-${ranks}`;
    await shutdownAll(request);
    lab.writeNotebook(`${name}.ipynb`, ['print("loss 0.25")'], ranks === 0 ? {} : lab.onRanks('all', name));
    if (ranks > 0) {
      await startGroup(request, name, ranks);
    }
    await lab.openNotebook(page, `${name}.ipynb`, { kernel: ranks === 0 ? 'Python 3 (ipykernel)' : null });
    const cell = await lab.runCell(page, 0);
    await expect(ranks === 0 ? cell.node.locator('.jp-OutputArea-output') : cell.items.first()).toContainText('loss');
    for (const sidebar of [false, true]) {
      if (sidebar) {
        await command(page, 'jupyter-dist:show-sidebar');
        await expect(page.locator('.jpd-Sidebar')).toBeVisible();
      }
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        await page.mouse.move(width / 2, 800);
        await page.waitForTimeout(2000);
        const { controls, ours, words, labels } = await countControls(page);
        const [all, header] = [cell.node, cell.node.locator('.jpd-Ranks-header')].map(heightOf);
        const row = [name, sidebar ? 'sidebar' : '', width, controls, ours, words, await all, await header];
        console.log(row.join('\t'));
        if (OUT) {
          fs.mkdirSync(OUT, { recursive: true });
          fs.appendFileSync(path.join(OUT, 'counts.tsv'), `${row.join('\t')}\t${labels.join(' | ')}\n`);
          await page.screenshot({ path: path.join(OUT, `${name}-${width}${sidebar ? '-sidebar' : ''}.png`) });
        }
      }
    }
    if (OUT && ranks > 0) {
      await command(page, 'apputils:change-theme', { theme: 'JupyterLab Dark' });
      await expect(page.locator('body')).toHaveAttribute('data-jp-theme-name', 'JupyterLab Dark');
      await page.waitForTimeout(2000);
      await page.screenshot({ path: path.join(OUT, `${name}-dark.png`) });
      await command(page, 'apputils:change-theme', { theme: 'JupyterLab Light' });
    }
    await endSessions(request);
  });
}
