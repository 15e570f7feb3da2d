/** What is wrong with the training of a cell stands under it, with its evidence. */
import { expect, test } from './fixtures';
import * as lab from './lab';
import { look } from './pictures';

test.beforeAll(({ request }) => lab.startGroup(request, 2));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const wrong = `import time
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(256, 4, generator=torch.Generator().manual_seed(0))
for batch in torch.utils.data.DataLoader(data, 8, shuffle=False):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    time.sleep(0.05)
print('trained')`;

test('a check has its evidence, is folded away by a click, and can be kept out of a notebook', async ({ page }) => {
  lab.writeNotebook('wrong.ipynb', [wrong, '1 + 1']);
  await lab.openNotebook(page, 'wrong.ipynb');
  const cell = await lab.runCell(page, 0);
  const line = cell.node.getByRole('group', { name: 'What is wrong with the training' });
  await expect(line).toContainText(/Ranks 0-1 got the same batch in steps \d+-\d+ \(line 8 of cell \[\d+\]\)/);
  await line.getByText('Evidence').click();
  await expect(line.getByRole('listitem')).toHaveCount(2);
  await look(page, 'wrong', cell.node);
  await expect(cell.node).toContainText('trained');

  const fold = line.getByRole('button', { name: 'Wrong', exact: true });
  await fold.click();
  await expect(line.locator('.jpd-NoteLine-text')).toBeHidden();
  await fold.click();
  await line.getByRole('button', { name: 'Not in this notebook' }).click();
  await expect(line).toHaveCount(0);
});

test.describe('a setting', () => {
  test.use({ ownPage: true });

  test('hides checks on the page, and cells are checked all the same', async ({ page, request }) => {
    const show = async (raw: string): Promise<void> =>
      expect((await request.put('/lab/api/settings/jupyter-dist:checks', { data: { raw } })).ok()).toBe(true);
    await show('{"show": false}');
    try {
      lab.writeNotebook('hidden.ipynb', [wrong, '%dist_checks']);
      await lab.openNotebook(page, 'hidden.ipynb');
      const cell = await lab.runCell(page, 0);
      await expect(cell.node).toContainText('trained');
      await expect(cell.node.getByRole('group', { name: 'What is wrong with the training' })).toHaveCount(0);
      const { executions } = await (await request.get(`/jupyter-dist/api/groups/${lab.GROUP}/executions`)).json();
      expect(JSON.stringify(executions)).toContain('got the same batch');
    } finally {
      await show('{}');
    }
  });
});
