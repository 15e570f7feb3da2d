/** With jupyter-collaboration: several pages have one notebook, and one of them writes. */
import { Browser, expect, Page, test } from '@playwright/test';
import * as lab from '../tests/lab';

test.describe.configure({ mode: 'serial' });

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

interface IWindow {
  jupyterapp: { shell: { currentWidget: { content: { model: { sharedModel: { ydoc: IYDoc } } } } } };
  ownWrites: number;
}

interface IYDoc {
  on(
    event: 'update',
    slot: (update: unknown, origin: unknown, doc: unknown, transaction: { local: boolean }) => void
  ): void;
}

/** A small square. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR4nGNogAIGyhgAgIQgAQ2AJGEAAAAASUVORK5CYII=';

/** Ticks until the test says stop, and shows a figure. */
function ticks(stop: string): string {
  return [
    'from IPython.display import display',
    'import os, time',
    'i = 0',
    `while not os.path.exists(${JSON.stringify(lab.rootPath(stop))}):`,
    '    print("tick", i, rank)',
    '    i += 1',
    '    time.sleep(0.5)',
    `display({"image/png": ${JSON.stringify(PNG)}, "text/plain": "a point"}, raw=True)`
  ].join('\n');
}

async function open(browser: Browser, name: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`/lab/tree/${name}?reset`);
  await lab.sessionReady(page);
  await expect(lab.picker(page)).toBeVisible();
  return page;
}

/** Count the changes of the document that this page makes, as opposed to those that come from others. */
async function countOwnWrites(page: Page): Promise<void> {
  await page.evaluate(() => {
    const own = window as unknown as IWindow;
    const { sharedModel } = own.jupyterapp.shell.currentWidget.content.model;
    own.ownWrites = 0;
    sharedModel.ydoc.on('update', (_update, _origin, _doc, { local }) => {
      own.ownWrites += local ? 1 : 0;
    });
  });
}

function ownWrites(page: Page): Promise<number> {
  return page.evaluate(() => (window as unknown as IWindow).ownWrites);
}

async function stop(page: Page, name: string): Promise<void> {
  await page.request.put(`/api/contents/${name}`, { data: { type: 'file', format: 'text', content: '' } });
}

test('rank cells go to ranks and kernel cells to the kernel', async ({ browser }) => {
  const where = 'print(f"rank {rank}" if "rank" in globals() else "on the kernel")';
  lab.writeNotebook('where.ipynb', [where, { source: where, metadata: { jupyter_dist: { target: 'kernel' } } }], {
    ...lab.onRanks(),
    kernelspec: { name: 'python3', display_name: 'Python 3 (ipykernel)', language: 'python' }
  });
  const page = await open(browser, 'where.ipynb');
  await expect(page.getByText('Python 3 (ipykernel) | Idle')).toBeVisible();
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 1).node.locator('.jp-OutputArea-output')).toHaveText('on the kernel\n');
  await expect(lab.cell(page, 0).items).toHaveText([/rank 0/, /rank 1/]);
  await page.context().close();
});

test('two pages see a cell live, one writes it, and the other takes over when that one goes', async ({ browser }) => {
  lab.writeNotebook('together.ipynb', [ticks('stop-1'), ticks('stop-2')]);
  const [first, second] = [await open(browser, 'together.ipynb'), await open(browser, 'together.ipynb')];
  await countOwnWrites(second);
  await lab.runCell(first, 0);
  for (const page of [first, second]) {
    const cell = lab.cell(page, 0);
    await expect(cell.summary).toContainText('running');
    await expect(cell.prompt).toHaveText('[*]:');
    await cell.tab('Rank 1').click();
    await expect(cell.ranks).toContainText('tick 1 1');
  }
  // A page that comes later writes no more than one that was there.
  const third = await open(browser, 'together.ipynb');
  await countOwnWrites(third);
  await expect(lab.cell(third, 0).summary).toContainText('running');
  await stop(first, 'stop-1');
  const texts: string[] = [];
  for (const page of [first, second, third]) {
    const cell = lab.cell(page, 0);
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(cell.prompt).toHaveText(/^\[\d+\]:$/);
    await cell.tab('Rank 1, ok').click();
    texts.push(await lab.shownText(cell));
    // The author has written the figure for all readers, and each page shows it in its place, once.
    await expect(cell.ranks.locator('img:visible')).toHaveCount(1);
    await expect(cell.node.locator('img:visible')).toHaveCount(1);
    await expect(cell.node.locator('.jp-Cell-outputArea > .jp-OutputArea-child:visible')).toHaveCount(1);
  }
  expect([await ownWrites(second), await ownWrites(third)]).toEqual([0, 0]);
  expect(texts[0]).toMatch(/^tick 0 1\ntick 1 1\n/);
  expect(texts.slice(1)).toEqual([texts[0], texts[0]]);

  await lab.runCell(first, 1);
  await expect(lab.cell(second, 1).ranks).toContainText('tick 1');
  await first.context().close();
  await stop(second, 'stop-2');
  await expect(lab.cell(second, 1).summary).toContainText('2 ranks \u00b7 ok');
  await expect(lab.cell(third, 1).prompt).toHaveText(/^\[\d+\]:$/);
  expect((await ownWrites(second)) === 0).not.toBe((await ownWrites(third)) === 0);
  // What is saved is what was seen: the server saves by itself.
  await expect
    .poll(() => JSON.stringify(lab.readNotebook('together.ipynb').cells[1].outputs))
    .toContain('"state":"ok"');
  for (const { outputs } of lab.readNotebook('together.ipynb').cells) {
    expect(outputs.filter(({ data }) => data['image/png'])).toHaveLength(1); // equal on both ranks
  }
  await second.context().close();
  await third.context().close();
});

test('a page that has not run a cell sees why it cannot end, and leaves what to do to the one that has', async ({
  browser
}) => {
  lab.writeNotebook('stuck.ipynb', ['import torch.distributed as dist\nif rank == 0: dist.barrier()']);
  const [first, second] = [await open(browser, 'stuck.ipynb'), await open(browser, 'stuck.ipynb')];
  await lab.runCell(second, 0);
  for (const page of [first, second]) {
    await expect(lab.cell(page, 0).node.getByRole('alert')).toContainText('Cannot end: rank 0 called what rank 1');
  }
  const [seen, own] = [first, second].map(page =>
    lab.cell(page, 0).node.getByRole('button', { name: 'Interrupt these ranks' })
  );
  await expect(seen).toBeHidden();
  await own.click();
  for (const page of [first, second]) {
    await expect(lab.cell(page, 0).summary).toContainText('rank 0 interrupted, rank 1 ok');
    await expect(lab.cell(page, 0).node.getByRole('alert')).toBeHidden();
    await page.context().close();
  }
});
