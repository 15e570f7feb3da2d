/** The pictures of the README, taken of the product as it is. `make pictures` keeps them, and these tests compare with what is kept. */
import { expect, test } from './fixtures';
import * as lab from './lab';
import { expectAsInDocs, openPictured, runCell, shoot, showSidebar } from './pictures';

test.use({ ownPage: true, viewport: { width: 1440, height: 900 } });

const TRAIN = `torch.manual_seed(0)
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

for step in range(5):
    x = torch.randn(32, 64) * (4 if rank == 2 else 1)  # its data has another scale
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    dist.all_reduce(model.weight.grad)
    optimizer.step()
    print(f"step {step}  loss {loss.item():.4f}")`;

const FIGURE = `import matplotlib.pyplot as plt

plt.figure(figsize=(5, 2.2))
plt.plot(torch.randn(200, generator=torch.Generator().manual_seed(rank)).cumsum(0))
plt.title(f"random walk of rank {rank}");`;

const FAIL = `if rank == 1:
    x = torch.ones(2, 3) @ torch.ones(2, 3)
print("the other ranks are fine")`;

test.afterAll(({ request }) => lab.shutdownGroup(request));

test('the pictures of the README: a notebook on four ranks, and the error of one', async ({ page, request }) => {
  await lab.startGroup(request, 4);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openPictured(page, 'train.ipynb', [TRAIN, FIGURE, FAIL]);
  await showSidebar(page);
  const trained = await runCell(page, 0, 'ok');
  // Lines that differ in numbers are one, and the numbers have their ranks.
  await expect(trained.ranks).toContainText('step 4');
  await expect(trained.items.first()).toContainText(/[\u00b1\u27e8]/);
  await runCell(page, 1, 'ok');
  const failed = await runCell(page, 2, 'error');
  await expect(failed.node).toContainText('mat1 and mat2 shapes cannot be multiplied');
  await shoot(page, 'error', failed.node);
  await page
    .locator('.jp-WindowedPanel-outer')
    .first()
    .evaluate(node => node.scrollTo(0, 0));
  await lab.cell(page, 0).editor.click();
  await page.keyboard.press('Escape');
  const card = page.locator('.jpd-Sidebar');
  await expect(card).toContainText('4 ranks, idle');
  await expect(card).toContainText('MB'); // a sample of each rank has come
  await shoot(page, 'overview');
  await expectAsInDocs(page, 'overview-light');
  await expectAsInDocs(page, 'overview-dark');
});
