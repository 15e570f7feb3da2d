/** Several pages at once: on one notebook, and on two notebooks of one group. */
import { Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

/** Ticks until the test says stop: much text in few pieces, while pages load that have to draw each. */
function ticks(word: string, stop: string): string {
  return [
    'import os, time',
    'i = 0',
    `while not os.path.exists(${JSON.stringify(lab.newPath(stop))}):`,
    '    for i in range(i, i + 10):',
    `        print("${word}", i, rank)`,
    '    i += 1',
    '    time.sleep(0.5)'
  ].join('\n');
}

test('two browsers on one notebook see the same, and one may go', async ({ page, browser, request }) => {
  lab.writeNotebook('shared.ipynb', [ticks('tick', 'stop-shared')]);
  await lab.openNotebook(page, 'shared.ipynb');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).ranks).toContainText('tick 3');
  const contexts = [await browser.newContext(), await browser.newContext()];
  const [second, third] = await Promise.all(
    contexts.map(async context => {
      const other = await context.newPage();
      await lab.openNotebook(other, 'shared.ipynb');
      return other;
    })
  );
  for (const other of [second, third]) {
    await expect(lab.cell(other, 0).prompt).toHaveText('[*]:');
    await expect(lab.cell(other, 0).summary).toContainText('running');
  }
  await contexts[1].close();
  await expect(lab.cell(second, 0).summary).toContainText('running');
  await request.put('/api/contents/stop-shared', { data: { type: 'file', format: 'text', content: '' } });
  for (const each of [page, second]) {
    const cell = lab.cell(each, 0);
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(cell.prompt).toHaveText(/^\[\d+\]:$/);
    await cell.tab('Rank 1, ok').click();
  }
  // A long text is drawn in several frames.
  const text = (each: Page): Promise<string> => lab.shownText(lab.cell(each, 0));
  await expect.poll(async () => (await text(page)) === (await text(second))).toBe(true);
  expect(await text(second)).toMatch(/^tick 0 1\ntick 1 1\n/);
  await contexts[0].close();
});

test('two pages that opened a notebook before either ran it see what the other one runs', async ({
  page,
  context,
  request
}) => {
  lab.writeNotebook('both.ipynb', [ticks('mine', 'stop-both'), 'print("yours", rank)']);
  const other = await context.newPage();
  await lab.openNotebook(page, 'both.ipynb');
  await lab.openNotebook(other, 'both.ipynb');
  await expect(page.locator('#jp-main-statusbar')).not.toContainText('Initializing');
  await lab.runCell(page, 0);
  await lab.runCell(other, 1);
  for (const each of [page, other]) {
    await expect(lab.cell(each, 0).prompt).toHaveText('[*]:');
    await expect(lab.cell(each, 0).summary).toContainText('running');
    await expect(lab.cell(each, 1).summary).toContainText('queued');
    await expect(lab.cell(each, 1).ranks).toHaveClass(/jpd-mod-agrees/); // as of a kernel's cell, [*] says it
  }
  await request.put('/api/contents/stop-both', { data: { type: 'file', format: 'text', content: '' } });
  for (const each of [page, other]) {
    await expect(lab.cell(each, 0).summary).toContainText('2 ranks \u00b7 ok');
    await expect(lab.cell(each, 1).summary).toContainText('2 ranks \u00b7 ok');
    await expect(lab.cell(each, 1).ranks).toContainText('yours');
  }
  await other.screenshot({ path: test.info().outputPath('both.png') });
  // What either saves has the output of both.
  await lab.saveNotebook(other);
  const saved = JSON.stringify(lab.readNotebook('both.ipynb'));
  expect(saved).toContain('mine 0 0');
  expect(saved).toContain('yours');
});

test('cells of two notebooks queue, and an interrupt stops the one that runs', async ({ page, context }) => {
  lab.writeNotebook('a.ipynb', ['import time\nprint("from a", rank)\ntime.sleep(1000)']);
  lab.writeNotebook('b.ipynb', ['print("from b", rank)']);
  const other = await context.newPage();
  await lab.openNotebook(page, 'a.ipynb');
  await lab.openNotebook(other, 'b.ipynb');
  await command(other, 'jupyter-dist:show-sidebar');
  const [a, b] = [lab.cell(page, 0), lab.cell(other, 0)];
  const group = other.getByRole('region', { name: `Group ${lab.GROUP}` });
  const waiting = group.getByText('Waiting: b.ipynb');
  const ways: [Page, () => Promise<void>][] = [
    [page, () => page.locator('[data-jp-item-name="interrupt"]').click()],
    [other, () => other.getByRole('button', { name: `Interrupt all ranks of ${lab.GROUP}` }).click()]
  ];
  for (const [, interrupt] of ways) {
    await lab.runCell(page, 0);
    await expect(a.summary).toContainText('running');
    await expect(a.items.first()).toContainText('from a');
    await lab.runCell(other, 0);
    await expect(b.summary).toContainText('queued');
    await expect(b.summary).toContainText(/after cell \[\d+\] of a\.ipynb, running for \d/);
    await expect(b.ranks).not.toHaveClass(/jpd-mod-agrees/);
    // Whose cell it waits for, and that it waits.
    await expect(group.locator('.jpd-RankRow').first()).toContainText('a.ipynb');
    await expect(waiting).toBeVisible();
    // The waiting notebook's own interrupt takes back its cell, and no more.
    await other.locator('[data-jp-item-name="interrupt"]').click();
    await expect(b.prompt).toHaveText('[ ]:');
    await expect(b.node).toContainText('Cancelled before it ran.');
    await expect(waiting).toHaveCount(0);
    await expect(a.summary).toContainText('running');
    await lab.runCell(other, 0);
    await expect(waiting).toBeVisible();
    await interrupt();
    await expect(a.summary).toContainText('interrupted');
    await expect(b.summary).toContainText('2 ranks \u00b7 ok');
    await expect(b.items).toHaveText([/from b 0/, /from b 1/]);
    await expect(a.node).not.toContainText('from b');
    await expect(b.node).not.toContainText('KeyboardInterrupt');
  }
});
