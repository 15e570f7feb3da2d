/** A slow cell has a line about the cause while it runs, and where its time went afterwards. */
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request, 2));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const steps = `import torch, torch.distributed as dist

def reduce():
    dist.all_reduce(torch.ones(1))
`;

const late = `import os, time
go = torch.ones(1)
# rank 1 is late
def prepare():
    time.sleep(0.06 * rank)
from slowsteps import reduce`;

const loop = (stop: string): string => `while go.item():
    prepare()
    reduce()
    go.fill_(0 if rank == 0 and os.path.exists(${JSON.stringify(stop)}) else 1)
    dist.broadcast(go, 0)`;

test('one line while it holds, folded by a click, with details by rank, and the past in the header', async ({
  page
}) => {
  const stop = lab.newPath('stop');
  fs.writeFileSync(lab.newPath('slowsteps.py'), steps);
  const filler = Array.from({ length: 8 }, (_, i) => `filler = ${i}\n\n\n\n`);
  lab.writeNotebook('slow.ipynb', [late, ...filler, loop(stop)]);
  await lab.openNotebook(page, 'slow.ipynb');
  await lab.runCell(page, 0);
  const cell = await lab.runCell(page, filler.length + 1);
  const line = cell.node.getByRole('group', { name: 'Why the cell is slow' });
  await expect(line).toContainText(
    /The others wait .* for rank 1, at line 5 of cell \[\d+\]: time\.sleep\(0\.06 \* rank\)/
  );

  // Folded, also after the page was loaded again.
  const fold = line.getByRole('button', { name: 'Slow', exact: true });
  await fold.click();
  await expect(line.locator('.jpd-NoteLine-text')).toBeHidden();
  await lab.saveNotebook(page);
  await lab.reload(page);
  await expect(fold).toHaveAttribute('aria-expanded', 'false');
  await expect(line.locator('.jpd-NoteLine-text')).toBeHidden();
  await fold.click();

  // By keyboard: Enter in a notebook would edit the cell.
  const details = line.getByRole('button', { name: 'Details' });
  await details.focus();
  await page.keyboard.press('Enter');
  const region = cell.node.getByRole('region', { name: 'Where the time goes' });
  const ranks = region.getByRole('table', { name: 'Time by rank' });
  await expect(ranks.getByRole('columnheader')).toHaveText(['rank', 'compute', 'communicate', 'wait', 'for', 'input']);
  await expect(ranks.getByRole('row', { name: /^0 / })).toContainText(/\d+ %rank 1\d+ %$/);
  await expect(ranks.getByRole('row', { name: /^1 / })).toContainText(/^1\d+ %\d+ %\d %/); // it hardly waits
  await expect(region.getByRole('table', { name: 'Time by line of code' })).toContainText('time.sleep(0.06 * rank)');
  await expect(region).toContainText(/A step takes [\d.]+ m?s and has 2 collectives/);
  await expect(region).toContainText('To try: Give this rank less to do');
  await page.keyboard.press('Shift+Tab');
  await details.focus();
  await page.keyboard.press('Tab');
  await expect(region.getByRole('button', { name: 'Close' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(region).toBeHidden();
  await expect(details).toBeFocused();

  // To the line, which is in another cell.
  await line.getByRole('button', { name: /^line 5 of cell/ }).click();
  const active = page.locator('.jp-Notebook .jp-Cell.jp-mod-active');
  const cursorLine = (): Promise<string | null | undefined> =>
    page.evaluate(() => window.getSelection()?.anchorNode?.parentElement?.closest('.cm-line')?.textContent);
  await expect.poll(cursorLine).toBe('    time.sleep(0.06 * rank)');
  await expect(active).toBeInViewport();

  fs.writeFileSync(stop, '');
  await cell.node.scrollIntoViewIfNeeded();
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect(line).toBeHidden();
  await expect(cell.summary).toHaveAttribute('title', /for rank 1.*Where its time went.*for rank 1.*A step took/s);
  await lab.saveNotebook(page);
  await lab.reload(page);
  await cell.tab('Folded').focus(); // no rank differs: the header of a cell without output comes with the focus
  await cell.node.getByRole('button', { name: 'Time', exact: true }).click();
  await expect(ranks.getByRole('row')).toHaveCount(3);

  // To a line of a module.
  await region.getByRole('button', { name: 'slowsteps.py:4' }).click();
  await expect(page.locator('.jp-FileEditor')).toBeVisible();
  await expect.poll(cursorLine).toBe('    dist.all_reduce(torch.ones(1))');

  await command(page, 'jupyter-dist:open-timeline', { group: lab.GROUP });
  await expect(page.getByRole('img', { name: /^How long the steps of cells took: [\d.]+ m?s to/ })).toBeVisible();
  await expect(page.locator('.jpd-Timeline-legend')).toContainText('time of a step');
});
