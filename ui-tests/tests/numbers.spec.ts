/** Lines that differ in numbers only are one, and the exact text is one click away. */
import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request, 4));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const TRAIN = `
for step in range(3):
    print(f"step {step:3d}  loss {0.09 / (step + 1) + 2 * rank / 1000:.4f}")
print("norm", "nan" if rank == 2 else 1.5 + rank / 10)
print("hello from rank", rank)
`;
const BARS = `
import sys
sys.stderr.write("\\rEpoch:  0%|          | 0/10 [00:00<?]")
dist.barrier()
sys.stderr.write(f"\\rEpoch: {10 * (rank + 3)}%|{'#' * (rank + 3):10s}| {rank + 3}/10 [00:03<00:04, {1 + rank / 10:.1f}it/s]")
`;

test('lines and bars of four ranks', async ({ page }) => {
  lab.writeNotebook('numbers.ipynb', [TRAIN, BARS]);
  await lab.openNotebook(page, 'numbers.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  const cell = lab.cell(page, 0);
  const bars = lab.cell(page, 1);
  await expect(bars.summary).toContainText('4 ranks \u00b7 ok');
  await expect(bars.node).toContainText(
    'Epoch: 30%|###       | 3/10 [00:03<00:04, 1.0it/s] \u27e8slowest: rank 0, 30% \u2026 fastest: rank 3, 60%\u27e9'
  );

  const rows = cell.node.locator('.jpd-RankItem');
  const first = 'step   0  loss 0.0930 \u00b10.0022 \u27e80.0900 (0) \u2026 0.0960 (3)\u27e9';
  await expect(rows.nth(0)).toContainText(first);
  await expect(rows.nth(0).locator('.jpd-RankItem-ranks')).toHaveText('ranks 0-3');
  await expect(rows.nth(3)).toContainText('norm 1.63 \u00b10.12 \u27e81.5 (0) \u2026 1.8 (3)\u27e9 nan (2)');
  // Which ranks greeted is not a number to sum up.
  await expect(rows).toHaveCount(8);

  // The button is over the line, which at no width is two for it.
  const added = await rows
    .nth(0)
    .locator('.jpd-Numbers')
    .evaluate(node => {
      const button = node.querySelector('button')!;
      const heightAt = (width: number): number => (
        (node.style.width = `${width}px`),
        node.getBoundingClientRect().height
      );
      const widths = Array.from({ length: 60 }, (_, i) => 300 + 8 * i);
      const withButton = widths.map(heightAt);
      button.style.display = 'none';
      const without = widths.map(heightAt);
      button.style.display = node.style.width = '';
      return withButton.filter((height, i) => height !== without[i]);
    });
  expect(added).toEqual([]);

  await rows.nth(0).hover();
  await rows.nth(0).getByRole('button', { name: '4 lines' }).click();
  await expect(rows.nth(2)).toContainText('step   0  loss 0.0920');
  await expect(rows).toHaveCount(12);

  const exact = cell.node.getByRole('button', { name: 'Exact text' });
  await exact.focus();
  await page.keyboard.press('Enter');
  await expect(exact).toHaveAttribute('aria-pressed', 'true');
  await expect(cell.node).not.toContainText('\u27e8');
  await expect(rows).toHaveCount(20);
  await page.keyboard.press('Enter');
  await expect(rows.nth(0)).toContainText(first);

  // The tab of a rank and the file are exact.
  await cell.node.getByRole('tab', { name: 'Rank 2' }).click();
  await expect(exact).toBeHidden();
  await expect(cell.node.getByRole('tabpanel', { name: 'Rank 2' })).toContainText('loss 0.0940');
  await lab.saveNotebook(page);
  expect(JSON.stringify(lab.readNotebook('numbers.ipynb'))).not.toContain('\u27e8');
});
