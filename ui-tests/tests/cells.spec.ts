/** A running cell that is moved, deleted, restored, cut or copied, or whose notebook is renamed: its run stays its own. */
import { Locator, Page } from '@playwright/test';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const MIME = 'application/vnd.jupyter-dist.ranks+json';

/** Ticks until the file of that name is there. */
function ticks(stop: string): string {
  return [
    'import os, time',
    'i = 0',
    `while not os.path.exists(${JSON.stringify(lab.newPath(stop))}):`,
    '    print("tick", i)',
    '    i += 1',
    '    time.sleep(0.1)',
    'print("the end")'
  ].join('\n');
}

function stop(name: string): void {
  fs.writeFileSync(lab.rootPath(name), '');
}

/** The cell with this source, wherever it is now. */
function find(page: Page, source: string): { node: Locator; prompt: Locator; summary: Locator; items: Locator } {
  const node = page
    .locator('.jp-Notebook .jp-CodeCell')
    .filter({ has: page.locator('.jp-InputArea-editor', { hasText: source }) });
  return {
    node,
    prompt: node.locator('.jp-InputPrompt'),
    summary: node.locator('.jpd-Ranks-summary'),
    items: node.locator('.jpd-RankItem')
  };
}

/** Open a notebook whose first cell ticks, and run it. */
async function begin(page: Page, name: string, ...others: (string | object)[]): Promise<void> {
  lab.writeNotebook(`${name}.ipynb`, [ticks(`stop-${name}`), ...others]);
  await lab.openNotebook(page, `${name}.ipynb`);
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).node).toContainText('tick 2');
  await page.keyboard.press('Escape');
}

const notice = (page: Page): Locator =>
  page.locator('.Toastify__toast').filter({ hasText: "A deleted cell is still running on ranks 0-1 of 'train'" });

const interrupt = (page: Page): Promise<void> => page.locator('[data-jp-item-name="interrupt"]').click();

interface ILabShell {
  jupyterapp: { shell: { widgets(area: string): Iterable<{ node: HTMLElement; close(): void }> } };
}

interface ISaved {
  source: string | string[];
  execution_count: number | null;
  outputs: { data: Record<string, { state: string; items: { output: { text: string } }[] }> }[];
}

async function savedCell(page: Page, name: string, index: number): Promise<ISaved> {
  await lab.saveNotebook(page);
  return (lab.readNotebook(name).cells as unknown as ISaved[])[index];
}

test('a running cell that is moved continues there, and is saved there', async ({ page }) => {
  await begin(page, 'moved', '"the second"');
  await page.keyboard.press('Control+Shift+ArrowDown');
  const { node, prompt, summary } = find(page, 'os.path.exists');
  await expect(page.locator('.jp-Notebook .jp-CodeCell').first()).toContainText('the second');
  await expect(prompt).toHaveText('[*]:');
  await expect(summary).toContainText('running');
  stop('stop-moved');
  await expect(summary).toContainText('2 ranks \u00b7 ok');
  await expect(prompt).toHaveText(/^\[\d+\]:$/);
  await expect(node).toContainText('the end');
  const saved = await savedCell(page, 'moved.ipynb', 1);
  expect(saved.execution_count).toBeGreaterThan(0);
  const bundle = saved.outputs[0].data[MIME];
  expect(bundle.state).toBe('ok');
  expect(bundle.items.map(item => item.output.text).join('')).toMatch(/^tick 0\n[^]*the end\n$/);
  await expect(notice(page)).toHaveCount(0);
});

test('a running cell that was moved is interrupted', async ({ page }) => {
  await begin(page, 'moved2', '"the second"');
  await page.keyboard.press('Control+Shift+ArrowDown');
  await expect(page.locator('.jp-Notebook .jp-CodeCell').first()).toContainText('the second');
  await interrupt(page);
  await expect(find(page, 'os.path.exists').summary).toContainText('interrupted');
});

test('a deleted running cell is reported, and interrupted by the notice or the toolbar', async ({ page }) => {
  await begin(page, 'deleted', '"the second"');
  await page.keyboard.press('d');
  await page.keyboard.press('d');
  await expect(find(page, 'os.path.exists').node).toHaveCount(0);
  await expect(notice(page)).toBeVisible();
  await notice(page).getByRole('button', { name: 'Interrupt' }).click();
  await expect(notice(page)).toHaveCount(0);

  await begin(page, 'deleted2', '"the second"');
  await page.keyboard.press('d');
  await page.keyboard.press('d');
  await expect(notice(page)).toBeVisible();
  await interrupt(page);
  await expect(notice(page)).toHaveCount(0);
  // The ranks are free.
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).summary).toContainText('2 ranks \u00b7 ok');
});

test('a deleted running cell that is restored keeps running, and can be interrupted', async ({ page }) => {
  await begin(page, 'restored', '"the second"');
  await page.keyboard.press('d');
  await page.keyboard.press('d');
  await expect(notice(page)).toBeVisible();
  await page.keyboard.press('z');
  const { node, prompt, summary } = find(page, 'os.path.exists');
  await expect(prompt).toHaveText('[*]:');
  await expect(notice(page)).toHaveCount(0);
  await interrupt(page);
  await expect(summary).toContainText('interrupted');
  await expect(node).toContainText('KeyboardInterrupt');
  await expect
    .poll(async () => (await savedCell(page, 'restored.ipynb', 0)).outputs[0].data[MIME].state)
    .toBe('interrupted');
});

test('a cell that ended while it was deleted says so when it is restored', async ({ page }) => {
  await begin(page, 'late', '"the second"');
  await page.keyboard.press('d');
  await page.keyboard.press('d');
  await expect(notice(page)).toBeVisible();
  stop('stop-late');
  await expect(notice(page)).toHaveCount(0);
  await page.keyboard.press('z');
  const { node, prompt, summary } = find(page, 'os.path.exists');
  await expect(summary).toContainText('2 ranks \u00b7 ok');
  await expect(prompt).toHaveText(/^\[\d+\]:$/);
  await expect(node).toContainText('the end');
});

test('a running cell that is cut and pasted continues where it is pasted', async ({ page }) => {
  await begin(page, 'cut', '"the second"');
  await page.keyboard.press('x');
  await expect(find(page, 'os.path.exists').node).toHaveCount(0);
  await page.keyboard.press('v');
  const { prompt, summary } = find(page, 'os.path.exists');
  await expect(prompt).toHaveText('[*]:');
  await expect(notice(page)).toHaveCount(0);
  stop('stop-cut');
  await expect(summary).toContainText('2 ranks \u00b7 ok');
  await expect.poll(async () => (await savedCell(page, 'cut.ipynb', 1)).outputs[0].data[MIME].state).toBe('ok');
});

test('a copy of a running cell does not say forever that it runs', async ({ page }) => {
  await begin(page, 'copied', '"the second"');
  await page.keyboard.press('c');
  await page.keyboard.press('v');
  const { summary } = find(page, 'os.path.exists');
  await expect(summary).toHaveCount(2);
  stop('stop-copied');
  for (const index of [0, 1]) {
    await expect(summary.nth(index)).toContainText('2 ranks \u00b7 ok');
    await expect
      .poll(async () => (await savedCell(page, 'copied.ipynb', index)).outputs[0].data[MIME].state)
      .toBe('ok');
  }
});

test('a notebook that is renamed keeps its runs, also over a reload', async ({ page }) => {
  await begin(page, 'before');
  await page.evaluate(async () => {
    const { jupyterapp } = window as unknown as {
      jupyterapp: { serviceManager: { contents: { rename(a: string, b: string): Promise<unknown> } } };
    };
    await jupyterapp.serviceManager.contents.rename('before.ipynb', 'after.ipynb');
  });
  await expect(page.locator('.lm-TabBar-tabLabel', { hasText: 'after.ipynb' })).toBeVisible();
  await lab.saveNotebook(page);
  page.on('dialog', dialog => void dialog.accept());
  await lab.openNotebook(page, 'after.ipynb');
  const { prompt, summary } = find(page, 'os.path.exists');
  await expect(prompt).toHaveText('[*]:');
  await interrupt(page);
  await expect(summary).toContainText('interrupted');
  await expect
    .poll(async () => (await savedCell(page, 'after.ipynb', 0)).outputs[0].data[MIME].state)
    .toBe('interrupted');
});

test('what was queued and cancelled says so', async ({ page }) => {
  // The second waits in the agent; the third, for another group, in the page.
  const elsewhere = { source: 'print("never")', metadata: { jupyter_dist: { group: 'elsewhere', ranks: 'all' } } };
  await begin(page, 'cancelled', 'print("never")', elsewhere);
  await lab.runCell(page, 1);
  await expect(lab.cell(page, 1).summary).toContainText('queued');
  await lab.runCell(page, 2);
  await expect(lab.cell(page, 2).prompt).toHaveText('[*]:');
  await interrupt(page);
  await expect(lab.cell(page, 0).summary).toContainText('interrupted');
  for (const index of [1, 2]) {
    await expect(lab.cell(page, index).node).toContainText('Cancelled before it ran.');
    await expect(lab.cell(page, index).prompt).toHaveText('[ ]:');
  }
});

test('a cell of a notebook in two views continues when one of them is closed, and the kernel cell after it runs', async ({
  page
}) => {
  const onKernel = { source: 'print("on the kernel")', metadata: { jupyter_dist: { target: 'kernel' } } };
  lab.writeNotebook('views.ipynb', [ticks('stop-views'), onKernel, 'print("after both")'], {
    ...lab.onRanks(),
    kernelspec: { name: 'python3', display_name: 'Python 3 (ipykernel)', language: 'python' }
  });
  await lab.openNotebook(page, 'views.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 0).node).toContainText('tick 2');
  await lab.execute(page, 'docmanager:clone');
  const clone = page.locator('.jp-NotebookPanel').nth(1);
  await expect(clone.locator('.jp-CodeCell').first()).toContainText('tick 2');
  await page.evaluate(() => {
    const { shell } = (window as unknown as ILabShell).jupyterapp;
    const panels = [...shell.widgets('main')].filter(({ node }) => node.classList.contains('jp-NotebookPanel'));
    panels[panels.length - 1].close();
  });
  await expect(page.locator('.jp-NotebookPanel')).toHaveCount(1);
  const [first, second, third] = [0, 1, 2].map(index => lab.cell(page, index));
  const shown = Number((await first.node.innerText()).match(/tick (\d+)(?!.*tick)/s)![1]);
  await expect(first.node).toContainText(`tick ${shown + 5}`);
  stop('stop-views');
  await expect(first.node).toContainText('the end');
  await expect(first.prompt).toHaveText(/^\[\d+\]:$/);
  await expect(second.node.locator('.jp-OutputArea-output')).toHaveText(/on the kernel/);
  await expect(third.items).toHaveText([/after both/]);
  expect((await savedCell(page, 'views.ipynb', 0)).outputs[0].data[MIME].state).toBe('ok');
  // What its output is compared with is the cell in the view that is left.
  await third.editor.click();
  await page.keyboard.type('# edited');
  await expect(third.node).toContainText('edited since');
});

test('a kernel cell that is moved while it runs: the rank cell after it waits for its end, and does not run if it fails', async ({
  page
}) => {
  for (const result of [0, 1]) {
    const [name, begun, go] = ['left', 'begun', 'go'].map(word => `${word}-${result}`);
    const waits = `while not os.path.exists(${JSON.stringify(lab.newPath(go))}):\n    time.sleep(0.05)`;
    const onKernel = {
      source: `import os, time\nopen(${JSON.stringify(lab.newPath(begun))}, "w").close()\n${waits}\n1 / ${result}`,
      metadata: { jupyter_dist: { target: 'kernel' } }
    };
    lab.writeNotebook(
      `${name}.ipynb`,
      [onKernel, `import os; print("it has ended:", os.path.exists(${JSON.stringify(lab.rootPath(go))}))`],
      {
        ...lab.onRanks(),
        kernelspec: { name: 'python3', display_name: 'Python 3 (ipykernel)', language: 'python' }
      }
    );
    await lab.openNotebook(page, `${name}.ipynb`);
    await expect(page.getByText('Python 3 (ipykernel) | Idle')).toBeVisible();
    await lab.execute(page, 'notebook:run-all-cells');
    await expect.poll(() => fs.existsSync(lab.rootPath(begun))).toBe(true);
    await lab.cell(page, 0).prompt.click();
    await lab.execute(page, 'notebook:move-cell-down');
    const { node, prompt, items } = find(page, 'it has ended');
    await expect(lab.cell(page, 0).node).toContainText('it has ended');
    await expect(prompt).toHaveText('[*]:');
    stop(go);
    if (result === 1) {
      await expect(items).toHaveText([/it has ended: True/]);
    } else {
      await expect(prompt).toHaveText('[ ]:');
      await expect(node.locator('.jp-OutputArea-output')).toHaveCount(0);
    }
  }
});
