import { expect, test } from './fixtures';
import * as lab from './lab';

const SETTINGS = '/lab/api/settings/jupyter-dist:rank-picker';
/** On CPU nothing is emptied: what a rank would do is counted where it would do it. */
const SPY = [
  'from jupyter_dist.rank.memory import MemoryCounters',
  'asked = []',
  'MemoryCounters.release_if_changed = lambda memory, before: asked.append(before)'
].join('\n');

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));
test.afterEach(({ request }) => request.put(SETTINGS, { data: { raw: '{}' } }));

test('the CUDA cache is emptied after cells when the setting says so', async ({ page, context, request }) => {
  const cells = [SPY, '"cell"', 'print(f"asked {len(asked)} times")'];
  // JupyterLab reads settings when it loads.
  for (const [raw, count, where] of [
    ['{}', '0', page],
    ['{"emptyCache": true}', '2', await context.newPage()]
  ] as const) {
    const put = await request.put(SETTINGS, { data: { raw } });
    expect(put.ok()).toBe(true);
    lab.writeNotebook('cache.ipynb', cells);
    await lab.openNotebook(where, 'cache.ipynb');
    await lab.execute(where, 'notebook:run-all-cells');
    await expect(lab.cell(where, 2).items.first()).toContainText(`asked ${count} times`);
    await expect(lab.cell(where, 2).items.first()).toContainText('ranks 0-1');
  }
});
