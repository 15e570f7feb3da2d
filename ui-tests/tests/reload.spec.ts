import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';

// What a reload opens is what the page had open when it last saved that.
test.use({ ownPage: true });

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const TICKS = 60;
/** It runs until the test lets it end: a page may load for longer than any cell. */
const slow = (go: string) =>
  [
    'import os, time',
    `for i in range(${TICKS}):`,
    '    print("tick", i)',
    `    while i == ${TICKS - 10} and not os.path.exists(${JSON.stringify(go)}): time.sleep(0.05)`,
    '    time.sleep(0.1)'
  ].join('\n');
const ALL_TICKS = [...Array(TICKS).keys()].map(i => `tick ${i}\n`).join('');

for (const saved of [true, false]) {
  const name = saved ? 'saved.ipynb' : 'unsaved.ipynb';
  test(`a reload loses nothing, ${saved ? 'saved' : 'not saved'} in between`, async ({ page }) => {
    const go = lab.newPath(`${name}.go`);
    lab.writeNotebook(name, [slow(go)]);
    await lab.openNotebook(page, name);
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    await expect(cell.items.first()).toContainText('tick 3');
    if (saved) {
      await lab.saveNotebook(page);
    }
    await lab.reload(page);
    await expect(cell.prompt).toHaveText('[*]:');
    await expect(cell.summary).toContainText('running');
    fs.writeFileSync(go, '');
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(cell.prompt).toHaveText(/^\[\d+\]:$/);
    await expect.poll(() => lab.shownText(cell)).toBe(ALL_TICKS);
  });
}

test('after a reload the toolbar interrupts', async ({ page }) => {
  lab.writeNotebook('again.ipynb', ['import time\nprint("begun")\ntime.sleep(1000)']);
  await lab.openNotebook(page, 'again.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.items.first()).toContainText('begun');
  await lab.saveNotebook(page);
  await lab.reload(page);
  await expect(cell.prompt).toHaveText('[*]:');
  await page.locator('[data-jp-item-name="interrupt"]').click();
  await expect(cell.summary).toContainText('interrupted');
});

test('closing the page in the middle of Run All loses no cell', async ({ page, context, request }) => {
  lab.writeNotebook('closed.ipynb', [
    `import os, time\nwhile not os.path.exists(${JSON.stringify(lab.newPath('stop-closed'))}): time.sleep(0.05)\nprint("first")`,
    'print("second")',
    'print("third")'
  ]);
  await lab.openNotebook(page, 'closed.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 2).summary).toContainText('queued');
  await page.close();
  await request.put('/api/contents/stop-closed', { data: { type: 'file', format: 'text', content: '' } });
  const again = await context.newPage();
  await lab.openNotebook(again, 'closed.ipynb');
  for (const [i, word] of ['first', 'second', 'third'].entries()) {
    await expect(lab.cell(again, i).summary).toContainText('ok');
    await expect(lab.cell(again, i).items.first()).toContainText(word);
  }
});
