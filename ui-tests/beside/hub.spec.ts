/** JupyterHub: a real single-user server, below a prefix, behind the real proxy. */
import { expect, test } from '@playwright/test';
import * as lab from '../tests/lab';

const PORT = Number(process.env.JUPYTER_DIST_TEST_PORT) + 40;
const HUB = `http://127.0.0.1:${PORT}/some/prefix`;
const USER = `${HUB}/user/tester`;
const KERNEL = 'Python 3 (ipykernel)';

test('in JupyterHub the page, its socket and the client of a kernel reach the ranks', async ({ page }) => {
  const start = [
    'from jupyter_dist.client import Group',
    'group = Group.start("hub", num_ranks=2, accelerator="cpu")',
    'print(group.run("rank + 40").values)'
  ];
  const stop = ['group.shutdown()', 'print("gone")'];
  const onKernel = { jupyter_dist: { target: 'kernel' } };
  lab.writeNotebook(
    'hub.ipynb',
    [
      { source: start.join('\n'), metadata: onKernel },
      'print("here", rank)',
      { source: stop.join('\n'), metadata: onKernel }
    ],
    {
      ...lab.onRanks('all', 'hub'),
      kernelspec: { name: 'python3', display_name: KERNEL, language: 'python' }
    }
  );
  await page.goto(`${HUB}/hub/login?next=${encodeURIComponent('/some/prefix/hub/spawn')}`);
  await page.locator('input[name="username"]').fill('tester');
  await page.locator('input[name="password"]').fill('only-for-tests');
  await page.locator('input[type="submit"]').click();
  try {
    await page.waitForURL(`${USER}/**`);
  } catch (error) {
    // The hub says there how far it has come.
    throw new Error(`${error}\n  The page: ${page.url()} ${await page.locator('body').innerText()}`);
  }
  await page.goto(`${USER}/lab/tree/hub.ipynb?reset`);
  await expect(page.getByText(`${KERNEL} | Idle`)).toBeVisible();
  const [client, ranks, end] = [lab.cell(page, 0), lab.cell(page, 1), lab.cell(page, 2)];
  await lab.runCell(page, client);
  await expect(client.node.locator('.jp-OutputArea-output')).toHaveText("{0: '40', 1: '41'}\n");
  // The page heard of the group through its socket. The picker shows what the active cell runs on.
  await ranks.editor.click();
  await expect(lab.picker(page)).toHaveText('hub \u00b7 2 of 2');
  await page.keyboard.press('Control+Enter');
  await expect(ranks.items).toHaveText([/here 0/, /here 1/]);
  await lab.runCell(page, end);
  await expect(end.node.locator('.jp-OutputArea-output')).toHaveText('gone\n');
  await ranks.editor.click();
  await expect(lab.picker(page)).toHaveText('hub (not running)');
});

test('a stranger reaches no group through the hub', async ({ request }) => {
  const answer = await request.get(`${USER}/jupyter-dist/api/groups`, { maxRedirects: 0 });
  expect([302, 403]).toContain(answer.status());
});
