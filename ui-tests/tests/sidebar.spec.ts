import { Page, WebSocketRoute } from '@playwright/test';
import { expect, test } from './fixtures';
import { command, openLab, replaceByDialog, run, shutdownAll, startGroup } from './ranks';

test.beforeEach(async ({ page, request, ownPage }) => {
  await shutdownAll(request);
  if (!ownPage) {
    await openLab(page);
    await command(page, 'jupyter-dist:show-sidebar');
  }
});

test.afterAll(async ({ request }) => shutdownAll(request));

const card = (page: Page, name: string) => page.getByRole('region', { name: `Group ${name}` });
const row = (page: Page, name: string, rank: number) => card(page, name).locator('.jpd-RankRow').nth(rank);

test('shows the host without any device', async ({ page }) => {
  const devices = page.getByRole('list', { name: 'Devices' });
  await expect(devices.getByText('Host memory')).toBeVisible();
  await expect(devices.getByRole('meter', { name: 'CPU' })).toHaveAttribute('aria-valuetext', /% of \d+ CPUs/);
});

test('starts a group by keyboard, and shuts it down', async ({ page }) => {
  await page.getByRole('region', { name: 'Ranks' }).getByRole('button', { name: 'Start a group' }).last().click();
  const form = page.getByRole('form', { name: 'Start a group of ranks' });
  await form.getByLabel('Name').fill('2 bad');
  await expect(form.getByText('A name starts with a letter')).toBeVisible();
  await form.getByLabel('Name').fill('train');
  await form.getByLabel('Ranks').fill('0');
  await expect(form.getByRole('button', { name: 'Start', exact: true })).toBeDisabled();
  await form.getByLabel('Ranks').fill('3');
  await form.getByLabel('Ranks').press('Enter');
  await expect(form).toHaveCount(0);
  await expect(card(page, 'train').locator('.jpd-RankRow[data-state="idle"]')).toHaveCount(3);
  await expect(page.locator('.jpd-Status')).toHaveText('train: 3 ranks, idle');
  // By keyboard, with the focus back at the button when the menu is closed.
  const more = card(page, 'train').getByRole('button', { name: 'More actions on train' });
  await more.focus();
  await page.keyboard.press('Enter');
  const menu = page.getByRole('menu', { name: 'Actions on train' });
  await expect(menu).toBeVisible();
  // These ranks have no device whose memory would be cached.
  await expect(menu.getByRole('menuitem', { name: 'Empty Memory Caches' })).toHaveCount(0);
  await page.keyboard.press('Escape');
  await expect(menu).toHaveCount(0);
  await expect(more).toBeFocused();
  await page.keyboard.press('Enter');
  await page.keyboard.press('ArrowUp');
  await expect(menu.locator('.lm-mod-active')).toHaveText('Shut Down train…');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Shut Down', exact: true }).click();
  await expect(card(page, 'train')).toHaveCount(0);
});

test('starts a group on several nodes, shows what its launcher says, and a machine that a resize leaves without ranks', async ({
  page
}) => {
  await command(page, 'jupyter-dist:start-group');
  const form = page.getByRole('form', { name: 'Start a group of ranks' });
  await form.getByLabel('Name').fill('wide');
  await form.getByLabel('Runs on').selectOption({ label: 'Several nodes on this machine' });
  await expect(form.getByText("The nodes are processes on the server's machine.")).toBeVisible();
  // An engine that is not here is no choice, and the form has the reason.
  await expect(form.getByLabel('Runs on').locator('option', { hasText: 'Kubernetes (not usable)' })).toBeDisabled();
  const reasons = form.locator('details', { has: page.getByText('Kubernetes', { exact: true }) });
  await reasons.locator('summary').click();
  await expect(reasons.getByRole('listitem').filter({ hasText: /^Kubernetes: \w+/ })).toBeVisible();
  const start = form.getByRole('button', { name: 'Start', exact: true });
  await form.getByLabel('Nodes').fill('0');
  await expect(start).toBeDisabled();
  await form.getByLabel('Nodes').fill('2');
  await form.getByLabel('Ranks per node').fill('x');
  await expect(start).toBeDisabled();
  await expect(start).toHaveCSS('opacity', '0.45'); // JupyterLab's colored buttons look the same when they are disabled
  await form.getByLabel('Ranks per node').fill('1');
  await expect(start).toHaveCSS('opacity', '1');
  await form.getByText('Backend, folder and variables').click();
  await form.getByLabel('Variables').fill('A=1');
  await form.getByLabel('Variables').fill(''); // the section stays open around it
  await form.getByLabel('Variables').fill('JUPYTER_DIST_OPTIONAL_PRELOAD=numpy'); // each node imports by itself
  await form.getByRole('button', { name: 'Start', exact: true }).click();
  const wide = card(page, 'wide');
  await expect(wide.locator('.jpd-Allocation')).toContainText('Its node agents run on localhost, localhost.');
  await expect(wide.locator('.jpd-RankRow[data-state="idle"]')).toHaveCount(2);
  await expect(wide.getByText('machine without ranks')).toHaveCount(0);
  await command(page, 'jupyter-dist:resize', { group: 'wide', ranks: 1 });
  await expect(wide.locator('.jpd-RankRow[data-state="idle"]')).toHaveCount(1);
  await expect(page.locator('.Toastify')).toContainText('wide has 1 rank now.'); // else it is shut down in the middle
  await wide.getByText('1 machine without ranks').click();
  await expect(wide.getByRole('list', { name: '1 machine without ranks' }).getByRole('listitem')).toBeVisible();
});

test('a preset fills in the form, and what few users need is under Advanced', async ({ page, request }) => {
  await command(page, 'jupyter-dist:start-group');
  const form = page.getByRole('form', { name: 'Start a group of ranks' });
  const preset = form.getByLabel('Preset', { exact: true });
  await expect(preset.locator('option')).toHaveText(['None', 'Two small nodes', 'broken (not usable)']);
  await preset.selectOption({ label: 'Two small nodes' });
  await expect(form.getByText('To try code for several nodes.')).toBeVisible();
  await expect(form.getByLabel('Nodes', { exact: true })).toHaveValue('2');
  await form.getByLabel('Name', { exact: true }).fill('preset');
  // A preset's option is shown where it is, and the administrator's settings beside it.
  await expect(form.getByLabel('Threads of each rank')).toHaveValue('3');
  await expect(form.getByLabel('What is passed on')).toHaveAttribute('placeholder', 'all');
  await expect(form.getByLabel('Folder for logs')).toBeDisabled();
  await expect(form.getByLabel('Save every (s)')).toHaveValue('900'); // unfolded, because it is set
  await form.getByLabel('Before the ranks').fill('export FROM_THE_FORM=one\nexport MORE=two');
  await form.getByLabel('Nodes', { exact: true }).fill('5');
  await form.getByRole('button', { name: 'Start', exact: true }).click();
  await expect(form.getByRole('alert')).toContainText('5 nodes were requested; this server allows at most 4.');
  await form.getByLabel('Nodes', { exact: true }).fill('1');
  await form.getByRole('button', { name: 'Start', exact: true }).click();
  await expect(card(page, 'preset').locator('.jpd-RankRow[data-state="idle"]')).toHaveCount(1);
  const code = "import os; print(*map(os.environ.get, ('FROM_THE_FORM', 'MORE', 'OMP_NUM_THREADS')))";
  const data = { code, ranks: 'all' };
  const answer = await request.post('/jupyter-dist/api/groups/preset/executions', { data });
  const { id } = await answer.json();
  const view = await request.get(`/jupyter-dist/api/groups/preset/executions/${id}?wait=60`);
  expect(JSON.stringify(await view.json())).toContain('one two 3');
  expect((await (await request.get('/jupyter-dist/api/groups/preset')).json()).self_saving.every_seconds).toBe(900);
});

test('more options have fields that are made of their rows', async ({ page, request }) => {
  await command(page, 'jupyter-dist:start-group');
  const form = page.getByRole('form', { name: 'Start a group of ranks' });
  const start = form.getByRole('button', { name: 'Start', exact: true });
  const kept = form.getByLabel('Saves kept');
  await form.getByLabel('Name', { exact: true }).fill('kept');
  await form.getByLabel('Ranks', { exact: true }).fill('2');
  await expect(kept).toBeHidden();
  await form.getByText('More options', { exact: true }).click();
  await expect(kept).toHaveAttribute('placeholder', '2'); // the server's default
  await expect(kept).toHaveAccessibleDescription(/How many of these saves are kept/);
  await expect(form.getByLabel('Check training')).toBeChecked();
  await kept.fill('0');
  await expect(form.getByText('Enter a whole number. It must be from 1 to 100.')).toBeVisible();
  await expect(kept).toHaveAttribute('aria-invalid', 'true');
  await expect(start).toBeDisabled();
  await kept.fill(''); // the field stays, though nothing is set any more
  await expect(start).toBeEnabled();
  await kept.pressSequentially('1e'); // no number: the browser hides what it is
  await expect(form.getByText('Enter a whole number. It must be from 1 to 100.')).toBeVisible();
  await kept.fill('5');
  await form.getByLabel('Save every (s)').fill('600.5');
  await form.getByLabel('Check training').uncheck();
  await form.getByLabel('Check training').check();
  const asked = page.waitForRequest(
    each => each.method() === 'POST' && new URL(each.url()).pathname.endsWith('/groups')
  );
  await start.click();
  const body = (await asked).postDataJSON();
  expect(body).toMatchObject({ saves_kept: 5, save_every_seconds: 600.5 });
  for (const unchanged of ['checks', 'park', 'park_after_seconds', 'save_before_end_seconds', 'python']) {
    expect(body).not.toHaveProperty(unchanged);
  }
  await expect(card(page, 'kept').locator('.jpd-RankRow[data-state="idle"]')).toHaveCount(2);
  const group = await (await request.get('/jupyter-dist/api/groups/kept')).json();
  expect(group.self_saving).toMatchObject({ every_seconds: 600.5, kept: 5 });
});

/** Ends the node agents of a group, as an engine does when it ends their job. */
const END_NODES = `
import os, glob
for path in glob.glob('/proc/[0-9]*/cmdline'):
    try:
        words = open(path, 'rb').read()
    except OSError:
        continue
    if b'agent/boot.py\\x00node' in words and GROUP in words:
        os.kill(int(path.split('/')[2]), 15)
`;

test('warns before the engine of a group ends its nodes, and starts it again by a click', async ({ page, request }) => {
  const env = { JUPYTER_DIST_OPTIONAL_PRELOAD: 'numpy', OF_THE_START: 'kept' };
  const data = { name: 'wide', launcher: 'scripted', num_nodes: 1, ranks_per_node: 1, env };
  const started = await request.post('/jupyter-dist/api/groups', { data });
  expect(started.status(), await started.text()).toBe(201);
  const words = /The job is about to reach its time limit\. That is at [\d: -]+\. Save what you need\./;
  await expect(card(page, 'wide').locator('.jpd-Allocation-warning')).toHaveText(words);
  const notice = page.locator('.Toastify__toast').filter({ hasText: "Group 'wide'" });
  await expect(notice).toHaveCount(1);
  await expect(notice).toContainText(words);
  await expect(row(page, 'wide', 0)).toHaveAttribute('data-state', 'idle');
  const { id } = await started.json();
  await run(request, 'wide', END_NODES.replace('GROUP', `b'${id}'`));
  await card(page, 'wide').getByRole('button', { name: 'Start again' }).click();
  await expect(row(page, 'wide', 0)).toHaveAttribute('data-state', 'idle');
  expect((await (await request.get('/jupyter-dist/api/groups/wide')).json()).id).not.toBe(id);
  const code = "import os; print(os.environ['OF_THE_START'] * 2)";
  const ran = await request.post('/jupyter-dist/api/groups/wide/executions', { data: { code, ranks: 'all' } });
  const view = await request.get(`/jupyter-dist/api/groups/wide/executions/${(await ran.json()).id}?wait=60`);
  expect(JSON.stringify(await view.json())).toContain('keptkept');
  await shutdownAll(request);
  await expect(notice).toHaveCount(0);
});

test('what could not be listed is listed when the user tries again, and by itself', async ({ page }) => {
  await page.route(/jupyter-dist\/api\/(environments|launchers)(\?|$)/, route => route.abort());
  await command(page, 'jupyter-dist:start-group');
  const sidebar = page.getByRole('region', { name: 'Ranks', exact: true });
  const again = sidebar.getByRole('button', { name: 'Try again' });
  await expect(sidebar.getByText('The Python environments could not be listed.')).toBeVisible();
  await page.unroute(/jupyter-dist\/api\/(environments|launchers)(\?|$)/);
  await page.route(/jupyter-dist\/api\/launchers(\?|$)/, route => route.abort());
  await again.click();
  await expect(sidebar.getByText('Other launchers could not be listed.')).toBeVisible();
  await page.unrouteAll();
  await expect(sidebar.getByLabel('Runs on').locator('option', { hasText: 'Kubernetes' })).toHaveCount(1);
  await expect(again).toHaveCount(0);
  await page.keyboard.press('Escape');
});

test('escape closes the form', async ({ page }) => {
  await command(page, 'jupyter-dist:start-group');
  const form = page.getByRole('form', { name: 'Start a group of ranks' });
  await form.getByLabel('Name').press('Escape');
  await expect(form).toHaveCount(0);
});

test("shows the server's words when a start fails", async ({ page }) => {
  await command(page, 'jupyter-dist:start-group');
  const form = page.getByRole('form', { name: 'Start a group of ranks' });
  await form.getByText('Backend, folder and variables').click();
  await form.getByLabel('Folder').fill('/no/such/folder');
  await form.getByRole('button', { name: 'Start', exact: true }).click();
  await expect(form.getByRole('alert')).toContainText('/no/such/folder');
});

test('shows which machines of a group have not joined', async ({ page, request }) => {
  const data = { name: 'wide', launcher: 'external', num_nodes: 2, ranks_per_node: 2 };
  const started = await request.post('/jupyter-dist/api/groups', { data });
  expect(started.status(), await started.text()).toBe(201);
  const nodes = card(page, 'wide').getByRole('list', { name: 'Nodes' });
  await expect(nodes.getByRole('listitem')).toHaveText([
    'node:0has not joinedranks 0-1',
    'node:1has not joinedranks 2-3'
  ]);
  await expect(card(page, 'wide').getByText('0 of 2 nodes')).toBeVisible();
  await expect(nodes).toBeVisible();
});

test('shows what each rank does, and interrupts one', async ({ page, request }) => {
  await startGroup(request, 'train', 2);
  await run(request, 'train', 'import time\nwhile True: time.sleep(0.05)');
  await expect(row(page, 'train', 1)).toContainText('[1] train.ipynb');
  await expect(page.locator('.jpd-Status')).toContainText('2 busy');
  await expect(row(page, 'train', 1).locator('.jpd-RankRow-memory')).toHaveText(/MB/);
  await row(page, 'train', 1).hover();
  await page.getByRole('button', { name: 'Interrupt rank 1' }).click();
  await expect(row(page, 'train', 1)).toHaveAttribute('data-state', 'idle');
  await expect(row(page, 'train', 0)).toHaveAttribute('data-state', 'busy');
  await page.getByRole('button', { name: 'Interrupt all ranks of train' }).click();
  await expect(row(page, 'train', 0)).toHaveAttribute('data-state', 'idle');
});

test('a rank that cannot be interrupted is named, killed alone, and replaced', async ({ page, request }) => {
  await startGroup(request, 'train', 2);
  await run(request, 'train', 'kept = rank', { wait: true });
  await run(request, 'train', 'sum(range(10**12))', { ranks: '1' });
  await expect(row(page, 'train', 1)).toHaveAttribute('data-state', 'busy');
  await row(page, 'train', 1).hover();
  await page.getByRole('button', { name: 'Interrupt rank 1' }).click();
  await expect(row(page, 'train', 1)).toContainText('it holds the GIL in C code that computes');
  await row(page, 'train', 1).getByRole('button', { name: 'Kill rank 1' }).click();
  await expect(page.getByRole('dialog')).toContainText('The other ranks keep theirs');
  await page.getByRole('dialog').getByRole('button', { name: 'Kill', exact: true }).click();
  await expect(row(page, 'train', 1)).toContainText('was killed (on request)');
  await card(page, 'train').getByRole('button', { name: 'Replace dead ranks' }).click();
  await replaceByDialog(page, 'Nothing');
  await expect(row(page, 'train', 1)).toHaveAttribute('data-state', 'idle');
  await run(request, 'train', 'dist.barrier(); print("kept by", globals().get("kept"))', { wait: true });
  await command(page, 'jupyter-dist:open-log', { group: 'train', rank: 0 });
  await expect(page.getByRole('log', { name: 'Output of rank 0' })).toContainText('kept by 0');
});

test('says why a rank is dead, and replaces it', async ({ page, request }) => {
  await startGroup(request, 'train', 2);
  await run(request, 'train', 'import os; os._exit(3)', { ranks: '1' });
  await expect(row(page, 'train', 1)).toHaveAttribute('data-state', 'dead');
  await expect(row(page, 'train', 1)).toContainText('code 3');
  await expect(row(page, 'train', 0)).toHaveAttribute('data-state', 'idle');
  await card(page, 'train').getByRole('button', { name: 'Replace dead ranks' }).click();
  await replaceByDialog(page, 'Nothing');
  await expect(row(page, 'train', 1)).toHaveAttribute('data-state', 'idle');
  await expect(card(page, 'train').getByRole('status')).toContainText('the other ranks keep theirs');
  await expect(card(page, 'train').getByRole('button', { name: 'Replace dead ranks' })).toHaveCount(0);
});

test('a process group that a cell destroyed is re-created', async ({ page, request }) => {
  await startGroup(request, 'train', 2);
  await run(request, 'train', 'kept = rank\ndist.destroy_process_group()', { wait: true });
  const button = card(page, 'train').getByRole('button', { name: 'Re-create process group' });
  await button.focus();
  await page.keyboard.press('Enter');
  await expect(card(page, 'train').getByRole('status')).toContainText('was re-created; all variables are kept');
  await expect(button).toHaveCount(0);
  await run(request, 'train', 'dist.barrier()\nprint("kept", kept)', { wait: true });
  await expect(card(page, 'train').getByText('was re-created')).toHaveCount(0);
  await row(page, 'train', 1)
    .getByRole('button', { name: /^Rank 1:/ })
    .click();
  await expect(page.getByRole('log', { name: 'Output of rank 1' })).toContainText('kept 1');
});

test('moves among ranks by arrows, and opens the output', async ({ page, request }) => {
  await startGroup(request, 'train', 3);
  await page.getByRole('button', { name: /^Rank 0:/ }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('End');
  await expect(page.getByRole('button', { name: /^Rank 2:/ })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('log', { name: 'Output of rank 2' })).toBeVisible();
});

test.describe(() => {
  test.use({ ownPage: true });

  test('a page has one connection, which stays, and another when it is cut', async ({ page, request }) => {
    await startGroup(request, 'train', 2);
    const sockets: WebSocketRoute[] = [];
    await page.routeWebSocket(/\/jupyter-dist\//, socket => {
      socket.connectToServer();
      sockets.push(socket);
    });
    await openLab(page);
    await command(page, 'jupyter-dist:show-sidebar');
    await expect(row(page, 'train', 1).locator('.jpd-RankRow-memory')).toHaveText(/MB/);
    await page.waitForTimeout(3000);
    expect(sockets.length).toBe(1);
    await sockets[0].close({ code: 1001 });
    await expect.poll(() => sockets.length).toBe(2);
    await run(request, 'train', 'import os; os._exit(3)', { ranks: '1' });
    await expect(row(page, 'train', 1)).toHaveAttribute('data-state', 'dead');
    expect(sockets.length).toBe(2);
  });
});

test('the memory chart follows a change of theme at once', async ({ page, request }) => {
  await startGroup(request, 'train', 2);
  const chart = card(page, 'train').locator('.jpd-MemoryChart');
  await expect(chart.locator('canvas')).toBeVisible();
  for (const [theme, isLight] of [
    ['JupyterLab Light', 'true'],
    ['JupyterLab Dark', 'false'],
    ['JupyterLab Light', 'true']
  ]) {
    await command(page, 'apputils:change-theme', { theme });
    await expect(page.locator('body')).toHaveAttribute('data-jp-theme-light', isLight);
    // Idle ranks are sampled every few seconds: it must not wait for that.
    await expect(chart.locator('canvas')).toBeVisible();
  }
});

test('is listed among what is running', async ({ page, request }) => {
  await startGroup(request, 'train', 2);
  await command(page, 'running:show-panel');
  const panel = page.locator('#jp-running-sessions');
  await expect(panel.getByText('train: 2 ranks')).toBeVisible();
});
