import { expect, test } from './fixtures';
import * as lab from './lab';

test.use({ ownPage: true });

const SETTINGS = '/lab/api/settings/jupyter-dist:rank-picker';
/** On CPU nothing is emptied: what a rank would do is counted where it would do it. */
const SPY = [
  'from jupyter_dist.rank.memory import Memory',
  'asked = []',
  'Memory.release_if_changed = lambda memory, before: asked.append(before)'
].join('\n');

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));
test.afterEach(({ request }) => request.put(SETTINGS, { data: { raw: '{}' } }));

test('the CUDA cache is emptied after cells when the setting says so', async ({
  page,
  request
}) => {
  const cells = [SPY, '"cell"', 'print(f"asked {len(asked)} times")'];
  for (const [raw, count] of [
    ['{}', '0'],
    ['{"emptyCache": true}', '2']
  ]) {
    const put = await request.put(SETTINGS, { data: { raw } });
    expect(put.ok()).toBe(true);
    lab.writeNotebook('cache.ipynb', cells);
    await page.goto('about:blank'); // JupyterLab reads settings when it loads
    await lab.openNotebook(page, 'cache.ipynb');
    await lab.execute(page, 'notebook:run-all-cells');
    await expect(lab.cell(page, 2).items.first()).toContainText(`asked ${count} times`);
    await expect(lab.cell(page, 2).items.first()).toContainText('ranks 0-1');
  }
});
