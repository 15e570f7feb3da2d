import { ChildProcess, spawn } from 'child_process';
import { once } from 'events';
import * as fs from 'fs';
import * as path from 'path';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { disable } from './pageconfig';

test.beforeAll(({ request }) => lab.startGroup(request, 4));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const SLIDER = `import ipywidgets
slider = ipywidgets.IntSlider(description=f"rank {rank}")
slider.observe(lambda change: print(f"rank {rank} has {change.new}"), "value")
slider`;

const BARS = `from tqdm.notebook import tqdm
for _ in tqdm(range(10 * (rank + 1)), desc=f"rank {rank}"): pass`;

test('a slider has its callback on its rank, on two pages and after a reload', async ({ page, context }) => {
  lab.writeNotebook('slider.ipynb', [SLIDER], lab.onRanks('0-1'));
  await lab.openNotebook(page, 'slider.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  const handles = cell.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .noUi-handle');
  await expect(handles).toHaveCount(2);
  await handles.nth(1).focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => lab.shownText(cell)).toContain('rank 1 has 1');

  // In the tab of a rank there is its widget only.
  await cell.tab('Rank 1').click();
  await expect(handles).toHaveCount(1);
  await expect(handles).toHaveAttribute('aria-valuenow', '1.0');
  await cell.tab('Folded').click();

  await lab.saveNotebook(page);
  await lab.reload(page);
  await expect(handles).toHaveCount(2);
  await expect(handles.nth(1)).toHaveAttribute('aria-valuenow', '1.0');

  const second = await context.newPage();
  await lab.openNotebook(second, 'slider.ipynb');
  const there = lab.cell(second, 0);
  const others = there.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .noUi-handle');
  await expect(others).toHaveCount(2);
  await handles.nth(0).focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => lab.shownText(cell)).toContain('rank 0 has 1');
  await expect(others.nth(0)).toHaveAttribute('aria-valuenow', '1.0');
  await expect.poll(() => lab.shownText(there)).toContain('rank 0 has 1');
  await second.close();
});

test('a display that a later cell updates changes where it was shown, also after a reload', async ({ page }) => {
  const begin =
    'from IPython.display import HTML, display\nbar, figure = [display(f"{n} before", display_id=True) for n in ("bar", "figure")]';
  const update = 'bar.update("bar after"); figure.update(HTML(f"<b>figure of {rank}</b>"))';
  lab.writeNotebook('updated.ipynb', [begin, update, 'bar.update("bar again")'], lab.onRanks('0-1'));
  await lab.openNotebook(page, 'updated.ipynb');
  const [first, second, third] = [0, 1, 2].map(index => lab.cell(page, index));
  await lab.runCell(page, first);
  await expect.poll(() => lab.shownText(first)).toContain('bar before');
  await lab.runCell(page, second);
  await expect(first.node.locator('.jpd-RankItems:not(.lm-mod-hidden) b')).toHaveText(['figure of 0', 'figure of 1']);
  await expect.poll(() => lab.shownText(first)).toContain('bar after');
  await lab.saveNotebook(page);
  await lab.reload(page);
  await expect(first.node.locator('.jpd-RankItems:not(.lm-mod-hidden) b')).toHaveText(['figure of 0', 'figure of 1']);
  await expect.poll(() => lab.shownText(first)).toContain('bar after');
  await lab.runCell(page, third);
  await expect.poll(() => lab.shownText(first)).toContain('bar again');
});

test('a bar of a notebook from elsewhere is alive after a reload in the middle of its cell', async ({
  page,
  context
}) => {
  // Other outputs make the file's author somebody else: it is not trusted.
  const other = { output_type: 'display_data', metadata: {}, data: { 'text/html': '<i>old</i>' } };
  const go = lab.newPath('unsigned.go');
  const code = `import os, time
from tqdm.notebook import tqdm
from IPython.display import HTML, display
display(HTML("<b>mine</b>"))
for i in tqdm(range(3), desc="steps"):
    while i == 1 and not os.path.exists(${JSON.stringify(go)}): time.sleep(0.05)`;
  lab.writeNotebook('unsigned.ipynb', [{ source: code, outputs: [other] }], lab.onRanks('0'));
  await lab.openNotebook(page, 'unsigned.ipynb');
  const cell = await lab.runCell(page, 0);
  const bar = cell.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .jpd-RankWidget .jupyter-widgets').first();
  await expect(bar).toContainText('0/3');
  await lab.reload(page);
  await expect(bar).toContainText('0/3');
  fs.writeFileSync(go, '');
  await expect(bar).toContainText('3/3');
  await expect(cell.summary).toContainText('ok');

  // Copies have the output, without tabs, times and buttons.
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const copied = await page.evaluate(() => {
    window.getSelection()!.selectAllChildren(document.querySelector('.jp-OutputArea-output.jpd-Ranks')!);
    document.execCommand('copy'); // as JupyterLab does
    return navigator.clipboard.readText();
  });
  expect(copied).toContain('mine');
  expect(copied).not.toMatch(/Folded|rank|\u2922/);
});

const SHARED = `import ipywidgets
rate = ipywidgets.IntSlider(description="rate")
rate.observe(lambda change: print(f"{'abcd'[rank]} has {change.new}"), "value")
rate`;

test('equal widgets of all ranks are one, until a rank has its own state', async ({ page }) => {
  lab.writeNotebook('shared.ipynb', [SHARED], lab.onRanks('0-2'));
  await lab.openNotebook(page, 'shared.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  const shown = cell.node.locator('.jpd-RankItems:not(.lm-mod-hidden)');
  const handles = shown.locator('.noUi-handle');
  await expect(handles).toHaveCount(1);
  await expect(shown.locator('.jpd-RankItem-ranks').first()).toHaveText('ranks 0-2');
  await handles.focus();
  await page.keyboard.press('ArrowRight');
  for (const name of ['a', 'b', 'c']) {
    await expect.poll(() => lab.shownText(cell)).toContain(`${name} has 1`);
  }

  // What the code changes on all ranks is shown in it, also after a reload.
  await lab.saveNotebook(page);
  await lab.reload(page);
  await expect(handles).toHaveCount(1);
  await expect(handles).toHaveAttribute('aria-valuenow', '1.0');
  await cell.editor.click();
  await page.keyboard.press('Escape');
  await page.keyboard.press('b');
  await page.keyboard.press('Enter');
  await page.keyboard.type('rate.value = 40');
  await page.keyboard.press('Control+Enter');
  await expect(handles).toHaveAttribute('aria-valuenow', '40.0');

  // The tab of a rank is exact: what is changed there stays there.
  await cell.tab('Rank 1').click();
  await expect(handles).toHaveCount(1);
  await handles.focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => lab.shownText(cell)).toContain('b has 41');
  await cell.tab('Folded').click();
  await expect(handles).toHaveCount(3);
  await expect(handles.nth(0)).toHaveAttribute('aria-valuenow', '40.0');
  await expect(handles.nth(1)).toHaveAttribute('aria-valuenow', '41.0');
});

const OUTPUTS = `import ipywidgets
from IPython.display import display
out = ipywidgets.Output()
display(out)
with out: print("collected by", "abcd"[rank])
ipywidgets.interact(lambda n: print("twice", 2 * n), n=4);`;

test('interact and Output show what they collect on each rank', async ({ page }) => {
  lab.writeNotebook('interact.ipynb', [OUTPUTS], lab.onRanks('0-1'));
  await lab.openNotebook(page, 'interact.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  const shown = cell.node.locator('.jpd-RankItems:not(.lm-mod-hidden)');
  await expect(shown).toContainText('collected by a');
  await expect(shown).toContainText('collected by b');
  // Before that it is the slider of one rank, and a key is for that rank alone.
  const one = shown.locator('.jpd-RankItem', { has: page.locator('.noUi-handle') });
  await expect(one.locator('.jpd-RankItem-ranks')).toHaveText(['ranks 0-1']);
  await expect(shown.getByText('twice 8')).toHaveCount(1);
  await shown.locator('.noUi-handle').focus();
  await page.keyboard.press('ArrowRight');
  await expect(shown.getByText('twice 10')).toHaveCount(1);
  for (const rank of ['0', '1']) {
    await cell.tab(`Rank ${rank}`).click();
    await expect(shown.getByText('twice 10')).toHaveCount(1);
  }
});

const UNINSTALLED = `import sys
kept, sys.modules["ipywidgets"] = sys.modules["ipywidgets"], None
try:
    from tqdm.notebook import tqdm
    for _ in tqdm(range(3)): pass
finally:  # other tests use these ranks
    sys.modules["ipywidgets"] = kept
    del sys.modules["tqdm.notebook"]`;

test.describe(() => {
  test.use({ ownPage: true });

  test('without the frontend widgets are text, and a sentence says so once', async ({ page }) => {
    await disable(page, '@jupyter-widgets/jupyterlab-manager');
    lab.writeNotebook('disabled.ipynb', [SHARED, SLIDER, UNINSTALLED], lab.onRanks('0-1'));
    await lab.openNotebook(page, 'disabled.ipynb');
    await lab.execute(page, 'notebook:run-all-cells');
    const [shared, slider, uninstalled] = [lab.cell(page, 0), lab.cell(page, 1), lab.cell(page, 2)];
    await expect(shared.node.locator('.jpd-RankWidget-text').first()).toHaveText(
      "IntSlider(value=0, description='rate')"
    );
    await expect(slider.node.locator('.jpd-RankWidget-text').last()).toHaveText(
      "IntSlider(value=0, description='rank 1')"
    );
    await expect(page.getByText('Widgets are shown as text')).toHaveCount(1);
    // Ranks without ipywidgets: what the library says.
    await expect(uninstalled.items.last()).toContainText('IProgress not found');
  });
});

test.describe('where the page still loads what draws widgets', () => {
  test.use({ ownPage: true });

  test('bars that reach their end meanwhile are shown', async ({ page }) => {
    lab.writeNotebook('early.ipynb', [BARS]);
    await lab.openNotebook(page, 'early.ipynb');
    let load = (): void => undefined;
    const loads = new Promise<void>(resolve => (load = resolve));
    await page.route('**/static/*.js*', route => loads.then(() => route.continue()));
    const bars = await lab.runCell(page, 0);
    await expect(bars.items).toHaveCount(4);
    await expect(bars.prompt).toHaveText(/^\[\d+\]:$/);
    load();
    const rows = bars.node.locator('.jpd-RankItem:has(.jpd-RankWidget)');
    for (const rank of [0, 1, 2, 3]) {
      await expect(rows.nth(rank)).toContainText(`${10 * (rank + 1)}/${10 * (rank + 1)}`);
    }
    await expect(rows).toHaveCount(4);
    await expect(bars.node).not.toContainText('Error');
  });
});

/** Below those that the system gives to connections: one of them may take a port between its choice and its use. */
const OWN_PORT = Number(process.env.JUPYTER_DIST_TEST_PORT) + 100;

/** A JupyterLab that a test may end. */
function startLab(port: number): ChildProcess {
  const folder = path.join(process.env.JUPYTER_RUNTIME_DIR!, String(port));
  const env = { ...process.env, JUPYTER_DIST_TEST_PORT: String(port), JUPYTER_RUNTIME_DIR: folder };
  return spawn('jupyter', ['lab', '--config', 'jupyter_server_test_config.py'], {
    env,
    stdio: ['ignore', 'inherit', 'inherit']
  });
}

/** A server that could not start does not end by a SIGTERM. */
async function endLab(server: ChildProcess): Promise<void> {
  const ended = server.exitCode === null && server.signalCode === null ? once(server, 'exit') : null;
  server.kill('SIGTERM');
  const late = setTimeout(() => server.kill('SIGKILL'), 30000);
  await ended;
  clearTimeout(late);
}

test('a bar of each of 8 ranks and a slider live through a restart of the server', async ({ browser }) => {
  let server = startLab(OWN_PORT);
  const context = await browser.newContext({ baseURL: `http://localhost:${OWN_PORT}` });
  const { request } = context;
  const answers = (): Promise<boolean> =>
    request.get('/jupyter-dist/api/groups').then(
      answer => answer.ok(),
      () => false
    );
  try {
    await expect.poll(answers).toBe(true);
    await lab.startGroup(request, 8);
    lab.writeNotebook('eight.ipynb', [BARS, SLIDER, SHARED.replace('abcd', 'abcdefgh')]);
    const page = await context.newPage();
    await lab.openNotebook(page, 'eight.ipynb');
    await lab.execute(page, 'notebook:run-all-cells');
    const [bars, sliders, shared] = [lab.cell(page, 0), lab.cell(page, 1), lab.cell(page, 2)];
    await expect(shared.node.locator('.noUi-handle')).toHaveCount(1);
    const rows = bars.node.locator('.jpd-RankItem:has(.jpd-RankWidget)');
    await expect(rows).toHaveCount(8);
    await expect(rows.nth(7)).toContainText('80/80');
    // One under the other, none wider than its cell, and as low as a line.
    const boxes = await rows.evaluateAll(nodes => nodes.map(node => node.getBoundingClientRect().toJSON()));
    boxes.forEach((box, i) => expect(box.y).toBeGreaterThanOrEqual(i > 0 ? boxes[i - 1].bottom : 0));
    expect(Math.max(...boxes.map(box => box.height))).toBeLessThan(50);
    expect(
      await bars.node.locator('.jpd-RankItems').evaluate(node => node.scrollWidth - node.clientWidth)
    ).toBeLessThanOrEqual(0);

    server.kill('SIGKILL');
    await expect.poll(answers).toBe(false);
    server = startLab(OWN_PORT);
    await expect.poll(answers).toBe(true);
    const handle = sliders.node.locator('.noUi-handle').nth(1);
    const close = page.getByRole('dialog').getByRole('button', { name: 'Close' });
    await expect(async () => {
      for (const button of await close.all()) {
        await button.click(); // JupyterLab says that there was no server
      }
      await handle.focus();
      await page.keyboard.press('ArrowRight');
      expect(await lab.shownText(sliders)).toContain('rank 1 has');
    }).toPass({ timeout: 60000 });
    await shared.node.locator('.noUi-handle').focus();
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => lab.shownText(shared)).toContain('a has 1');
    await expect(rows.nth(7)).toContainText('80/80');
  } finally {
    await lab.shutdownGroup(request).catch(() => undefined);
    await context.close();
    await endLab(server);
  }
});

test('each rank has its progress bar, and a dead one keeps its widgets as they were', async ({ page, request }) => {
  lab.writeNotebook('bars.ipynb', [BARS, SLIDER]);
  await lab.openNotebook(page, 'bars.ipynb');
  const bars = lab.cell(page, 0);
  await lab.runCell(page, bars, 'Shift+Enter');
  await expect(bars.summary).toContainText('4 ranks \u00b7 ok');
  const shown = bars.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .jpd-RankWidget');
  await expect(shown).toHaveCount(4);
  await expect(shown.nth(2)).toContainText('30/30');

  await page.keyboard.press('Shift+Enter');
  const cell = lab.cell(page, 1);
  const handles = cell.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .noUi-handle');
  await expect(handles).toHaveCount(4);
  const answer = await request.post(`/jupyter-dist/api/groups/${lab.GROUP}/ranks/3/kill`);
  expect(answer.ok()).toBe(true);
  await expect(cell.node.locator('.jpd-RankWidget-note').nth(3)).toHaveText('Rank 3 is dead: this is its last state.');
  await handles.nth(0).focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => lab.shownText(cell)).toContain('rank 0 has 1');
});
