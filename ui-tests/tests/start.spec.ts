// Groups that are started from a notebook, in one step.
import { APIRequestContext, Page } from '@playwright/test';
import * as fs from 'fs';
import * as path from 'path';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { openLab, shutdownAll } from './ranks';

// Before each as well: the page of a test that failed may still have been starting a group.
test.beforeEach(({ request }) => shutdownAll(request));
test.afterEach(({ request }) => shutdownAll(request));
test.afterAll(() =>
  ['cold', 'held'].forEach(name => fs.rmSync(path.join(KERNELS, name), { recursive: true, force: true }))
);

const KERNELS = path.join(process.env.JUPYTER_DATA_DIR!, 'kernels');

interface ICounting {
  jpdClicks: number;
}

interface IShellWindow {
  jupyterapp: { shell: { collapseRight(): void; expandRight(): void } };
}

interface IRenamingWindow {
  jupyterapp: {
    serviceManager: { contents: { rename(from: string, to: string): Promise<unknown> } };
    shell: { currentWidget: { context: { path: string } } };
  };
}

interface IListening {
  jpdSaid: string[];
}

async function groups(request: APIRequestContext): Promise<{ name: string; world_size: number; state: string }[]> {
  return (await (await request.get('/jupyter-dist/api/groups')).json()).groups;
}

/** Record in `jpdSaid` what the headers of cells say, however briefly. */
async function listen(page: Page): Promise<void> {
  await page.evaluate(notebook => {
    const window_ = window as unknown as IListening;
    window_.jpdSaid = [];
    const listen = (): void => {
      const nodes = [...document.querySelectorAll('.jpd-Ranks-summary')];
      window_.jpdSaid.push(...nodes.map(node => node.textContent ?? ''));
    };
    const panel = document.querySelector(notebook)!;
    new MutationObserver(listen).observe(panel, { childList: true, subtree: true, characterData: true });
  }, lab.SHOWN_NOTEBOOK);
}

/**
 * Write the kernelspec of an environment in which nothing has imported torch. In `cold`, groups import it themselves;
 * in `held`, the forkserver does, before the page sees the group, once the returned function is called.
 */
function writeEnvironment(name: 'cold' | 'held'): () => void {
  const folder = path.join(KERNELS, name);
  const hold = path.join(folder, 'hold');
  // The server waits for a forkserver that computes.
  const begin = {
    cold: ['sys.exit("not here")'],
    held: [
      'import os, time',
      `while os.path.exists(${JSON.stringify(hold)}):`,
      '    sum(range(1_000_000)); time.sleep(0.1)'
    ]
  };
  const lines = ['import sys', 'if "forkserver" in sys.orig_argv:', ...begin[name].map(line => `    ${line}`)];
  const argv = ['python', '-m', 'ipykernel_launcher', '-f', '{connection_file}'];
  const env = { PYTHONPATH: folder, JUPYTER_DIST_OPTIONAL_PRELOAD: 'numpy' }; // for a shorter import (tests/libraries.py)
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(hold, '');
  fs.writeFileSync(path.join(folder, 'sitecustomize.py'), `${lines.join('\n')}\n`);
  fs.writeFileSync(
    path.join(folder, 'kernel.json'),
    JSON.stringify({ argv, display_name: name, language: 'python', env })
  );
  return () => fs.rmSync(hold);
}

test('from a fresh JupyterLab to the first cell on all ranks: at most two clicks, and Shift+Enter', async ({
  page,
  request
}) => {
  await openLab(page);
  const tile = page.locator('.jp-LauncherCard').filter({ hasText: /Notebook on \d+ ranks/ });
  await expect(tile).toHaveCount(1);
  const size = Number(/\d+/.exec(await tile.innerText())![0]);
  // One section has all that runs on ranks, and no tile is called only Ranks.
  const section = page.locator('.jp-Launcher-section').filter({ has: page.getByRole('heading', { name: 'Ranks' }) });
  await expect(section.locator('.jp-LauncherCard')).toHaveText([
    `Notebook on ${size} ranks`,
    'Notebook with the kernel Ranks',
    'Console with the kernel Ranks',
    'Start a Group of Ranks\u2026'
  ]);
  await expect(page.locator('.jp-LauncherCard', { hasText: /^Ranks$/ })).toHaveCount(0);
  await page.evaluate(() => {
    const window_ = window as unknown as ICounting;
    window_.jpdClicks = 0;
    window.addEventListener('pointerdown', () => window_.jpdClicks++, true);
  });
  await tile.click();
  // No question for a kernel, and the cell takes what is typed.
  await expect(page.locator('.jp-Notebook.jp-mod-editMode .jp-CodeCell')).toHaveCount(1);
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.keyboard.type('print("rank", rank, "of", dist.get_world_size())');
  await page.keyboard.press('Shift+Enter');
  const cell = lab.cell(page, 0);
  await expect(cell.summary).toContainText(`${size} ranks \u00b7 ok`);
  await expect(cell.items.first()).toContainText(`rank 0 of ${size}`);
  expect(await page.evaluate(() => (window as unknown as ICounting).jpdClicks)).toBeLessThanOrEqual(2);
  expect((await groups(request)).map(group => group.world_size)).toEqual([size]);
});

test('a second notebook of the tile has nothing of the first, which was renamed while its cell runs', async ({
  page,
  request
}) => {
  await openLab(page);
  const tile = page.locator('.jp-LauncherCard').filter({ hasText: /Notebook on \d+ ranks/ });
  const edited = page.locator(`${lab.SHOWN_NOTEBOOK} .jp-Notebook.jp-mod-editMode .jp-CodeCell`);
  await tile.click();
  await expect(edited).toHaveCount(1);
  await page.keyboard.type('import time\nfor i in range(10000): print("tick", i); time.sleep(0.1)');
  await page.keyboard.press('Control+Enter');
  await expect(lab.cell(page, 0).items.first()).toContainText('tick 3');
  await lab.saveNotebook(page);
  // The next one has the name that this one has had.
  const renamed = await page.evaluate(async () => {
    const { jupyterapp } = window as unknown as IRenamingWindow;
    const { path } = jupyterapp.shell.currentWidget.context;
    await jupyterapp.serviceManager.contents.rename(path, 'ticks.ipynb');
    return path;
  });
  await expect(page.locator('.lm-TabBar-tabLabel', { hasText: 'ticks.ipynb' })).toBeVisible();
  await lab.execute(page, 'launcher:create');
  await tile.click();
  await expect(page.locator('.jp-NotebookPanel')).toHaveCount(2);
  await expect(edited).toHaveCount(1);
  const path = await page.evaluate(
    () => (window as unknown as IRenamingWindow).jupyterapp.shell.currentWidget.context.path
  );
  expect(path).toBe(renamed);
  // By the time its own group is ready, it has found whatever it finds.
  await expect.poll(async () => (await groups(request)).map(({ state }) => state)).toEqual(['ready', 'ready']);
  const second = page.locator(`${lab.SHOWN_NOTEBOOK} .jp-CodeCell`);
  await expect(second.locator('.jp-InputPrompt')).toHaveText('[ ]:');
  await expect(second.locator('.jpd-Ranks')).toHaveCount(0);
});

test('a number is enough; a group that ends is offered where it is missed', async ({ page, request }) => {
  lab.writeNotebook('My train.ipynb', ['x = 40', 'print(x + 2)'], {});
  await lab.openNotebook(page, 'My train.ipynb');
  await lab.chooseAction(page, '2 ranks');
  await expect(lab.picker(page)).toHaveText('My-train \u00b7 2 of 2');
  await (await lab.runCell(page, 0)).summary.getByText('2 ranks \u00b7 ok').waitFor();
  await lab.saveNotebook(page);
  const { start, ...target } = lab.readNotebook('My train.ipynb').metadata.jupyter_dist as Record<string, unknown>;
  expect(target).toEqual({ group: 'My-train', ranks: 'all' });
  expect(start).toMatchObject({ num_ranks: 2 });

  await shutdownAll(request);
  const again = page.locator('.jp-NotebookPanel-toolbar').getByRole('button', { name: /^Start My-train \(2 ranks/ });
  await expect(again).toBeVisible();
  const cell = await lab.runCell(page, 1);
  const offer = cell.node.getByRole('group', { name: 'Start the group of this cell' });
  await expect(offer.getByRole('button')).toHaveText([
    /^Start My-train \(2 ranks, env /,
    'Start and run up to here',
    'Change\u2026'
  ]);
  expect(await cell.node.innerText()).not.toContain('POST');
  // A way for the keyboard: Enter presses the button and does not edit the cell.
  await offer.getByRole('button', { name: 'Start and run up to here' }).focus();
  await page.keyboard.press('Enter');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect(cell.items).toHaveText(/42/);
  await expect(offer).toHaveCount(0);
  await expect(again).toHaveCount(0);

  await shutdownAll(request);
  await again.click();
  await expect.poll(async () => (await groups(request)).map(({ name }) => name)).toEqual(['My-train']);
  await (await lab.runCell(page, 0)).summary.getByText('2 ranks \u00b7 ok').waitFor();
});

test('the form leaves the focus to the cell in which the user types by the time it is shown', async ({ page }) => {
  lab.writeNotebook('typing.ipynb', ['x = 1'], {});
  await lab.openNotebook(page, 'typing.ipynb');
  let release = (): void => undefined;
  const held = new Promise<void>(resolve => (release = resolve));
  const environments = /jupyter-dist\/api\/environments(\?|$)/;
  await page.route(environments, async route => {
    await held;
    await route.continue();
  });
  await lab.chooseAction(page, 'Start group\u2026');
  await expect(page.getByText('Looking for Python environments')).toBeVisible();
  const cell = lab.cell(page, 0);
  await cell.editor.click();
  release();
  const name = page.getByRole('form', { name: 'Start a group of ranks' }).getByLabel('Name');
  await expect(name).toBeVisible();
  // A form takes the focus when it has been painted.
  await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve))));
  await page.keyboard.press('Control+End');
  await page.keyboard.type('00');
  await expect(cell.editor).toContainText('x = 100');
  await page.unroute(environments);

  // Hidden and shown again, it has what was typed, and the focus stays.
  await name.fill('typed');
  await cell.editor.click();
  await page.evaluate(() => (window as unknown as IShellWindow).jupyterapp.shell.collapseRight());
  await expect(name).toHaveCount(0);
  await page.evaluate(() => (window as unknown as IShellWindow).jupyterapp.shell.expandRight());
  await expect(name).toHaveValue('typed');
  await page.keyboard.type('0');
  await expect(cell.editor).toContainText('x = 1000');
});

test('a hostile notebook starts nothing and sets nothing that was not seen', async ({ page, request }) => {
  const start = {
    num_ranks: 2,
    env: { SEEN: 'by the user' },
    cwd: '/',
    python: '/tmp/evil',
    environ: 'UNSEEN=1\u0000',
    backend: '<img src=x onerror="window.pwned = 1">'
  };
  const metadata = { jupyter_dist: { group: '<b>evil</b>', ranks: 'all', start } };
  lab.writeNotebook(
    'evil-start.ipynb',
    ['import os; print(os.environ.get("SEEN"), os.environ.get("UNSEEN"), os.getcwd())'],
    metadata
  );
  await lab.openNotebook(page, 'evil-start.ipynb');
  const cell = await lab.runCell(page, 0);
  const offer = cell.node.getByRole('group', { name: 'Start the group of this cell' });
  await expect(offer.getByRole('listitem')).toHaveText([
    'Sets SEEN=by the user',
    'Not used, because it is not valid in this notebook: cwd, python, environ, backend'
  ]);
  expect(await groups(request)).toEqual([]);
  // The picker has no room for it, and asks.
  await page.locator('.jpd-RankChoice-start').click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('Sets SEEN=by the user');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect(await groups(request)).toEqual([]);
  await offer.getByRole('button', { name: 'Start and run up to here' }).click();
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect.poll(() => lab.shownText(cell)).toBe(`by the user None ${process.env.JUPYTERLAB_GALATA_ROOT_DIR}\n`);
  expect(await page.evaluate(() => 'pwned' in window)).toBe(false);
});

test('a cell that is run while the server imports torch for all groups says so, and then runs', async ({
  page,
  request
}) => {
  const release = writeEnvironment('held');
  const start = { num_ranks: 2, environment: 'held' };
  const own = { source: 'x = 1', metadata: { jupyter_dist: { target: 'kernel' } } };
  lab.writeNotebook('shared-import.ipynb', ['print("one of", dist.get_world_size())', own], {
    jupyter_dist: { group: 'first', ranks: 'all', start }
  });
  await lab.openNotebook(page, 'shared-import.ipynb');
  const select = lab.picker(page);
  await expect(select).toHaveText('first (not running)');
  await page
    .locator('.jp-NotebookPanel-toolbar')
    .getByRole('button', { name: /^Start first \(2 ranks, env held/ })
    .click();
  await expect(select).toHaveText('first (starting\u2026)');
  const cell = await lab.runCell(page, 0);
  const note = cell.node.getByRole('status').filter({ hasText: 'Waiting for the ranks to start.' });
  await expect(note).toContainText('imports torch');
  // The page says so at once, and the server when it has been asked.
  const answered = async () => (await (await request.get('/jupyter-dist/api/groups/first')).json()).error.message;
  await expect.poll(answered).toBe("There is no group 'first' yet: it is about to start.");
  await lab.cell(page, 1).editor.click();
  release();
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect(cell.items).toHaveText(/one of 2/);
  await expect(note).toHaveCount(0);
  await expect(select).not.toBeFocused(); // the user is in the cell
  // The group is for the notebook, from which it was started, and not for the cell in which the user is by then.
  await cell.editor.click();
  await expect(select).toHaveText(/^first/);
  await lab.saveNotebook(page);
  expect(lab.readNotebook('shared-import.ipynb').cells[1].metadata.jupyter_dist).toEqual({ target: 'kernel' });
});

test('a cell that is run while its group imports torch says so, and then runs', async ({ page }) => {
  writeEnvironment('cold');
  const start = { num_ranks: 2, environment: 'cold' };
  lab.writeNotebook('cold.ipynb', ['print("one of", dist.get_world_size())'], {
    jupyter_dist: { group: 'slow', ranks: 'all', start }
  });
  await lab.openNotebook(page, 'cold.ipynb');
  await listen(page);
  await page
    .locator('.jp-NotebookPanel-toolbar')
    .getByRole('button', { name: /^Start slow \(2 ranks, env cold/ })
    .click();
  const cell = await lab.runCell(page, 0);
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect(cell.items).toHaveText(/one of 2/);
  const said = await page.evaluate(() => (window as unknown as IListening).jpdSaid);
  expect(said).toContainEqual(expect.stringMatching(/^2 ranks \u00b7 queued \u00b7 importing torch \(\d.* m?s\)$/));
});
