import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('the cells of a notebook are exported as a script beside it', async ({ page }) => {
  const inKernel = { source: 'left = 1', metadata: { jupyter_dist: { target: 'kernel' } } };
  lab.writeNotebook('digits.ipynb', ['x = rank + 1', inKernel, '!true', 'print(f"x is {x}")']);
  const file = lab.newPath('digits.py');
  await lab.openNotebook(page, 'digits.ipynb', { kernel: 'Python 3 (ipykernel)' });
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 3).items.first()).toContainText('x is 1');

  void lab.execute(page, 'jupyter-dist:export-script');
  await expect(page.getByText('Wrote 3 cells to digits.py.')).toBeVisible();
  await expect(page.getByRole('tab', { name: 'digits.py' })).toBeVisible();
  const script = fs.readFileSync(file, 'utf8');
  const order = ['x = rank + 1', '# left = 1', "subprocess.run('true', shell=True)", 'print(f"x is {x}")'];
  const places = order.map(text => script.indexOf(text));
  expect(places[0]).toBeGreaterThan(0);
  expect(places).toEqual([...places].sort((a, b) => a - b));

  // A file that is there is replaced only on request.
  fs.writeFileSync(file, 'mine');
  await page.getByRole('tab', { name: 'digits.ipynb' }).click();
  void lab.execute(page, 'jupyter-dist:export-script');
  await page.getByRole('button', { name: 'Cancel' }).click();
  expect(fs.readFileSync(file, 'utf8')).toBe('mine');
});
