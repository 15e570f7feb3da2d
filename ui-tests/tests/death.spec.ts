/** A rank that is killed is named where one looks, with the cause, its memory and what to do. */
import { APIRequestContext, Locator, Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, replaceByDialog } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const CAUSE = /SIGKILL|signal 9/;
const MEMORY = /peak memory \d+\.\d GiB/;

async function kill(request: APIRequestContext, rank: number): Promise<void> {
  const group = await (await request.get(`/jupyter-dist/api/groups/${lab.GROUP}`)).json();
  process.kill(group.ranks[rank].pid, 'SIGKILL');
}

const row = (page: Page, rank: number) =>
  page
    .getByRole('region', { name: `Group ${lab.GROUP}` })
    .locator('.jpd-RankRow')
    .nth(rank);

/** The sidebar and the output of rank 1 name it, and offer what to do. */
async function expectNamed(page: Page): Promise<void> {
  await expect(row(page, 1)).toHaveAttribute('data-state', 'dead');
  await expect(row(page, 1)).toContainText(CAUSE);
  await expect(row(page, 1)).toContainText(MEMORY);
  const log = page.getByRole('log', { name: 'Output of rank 1' });
  const notes = log.locator('p').filter({ hasText: 'Rank 1 was killed' });
  await expect(notes.last()).toContainText(CAUSE);
  await expect(notes.last()).toContainText(MEMORY);
  await expect(row(page, 0)).toHaveAttribute('data-state', 'idle');
}

async function replace(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Replace dead ranks' }).click();
  await replaceByDialog(page, 'Nothing');
  for (const rank of [0, 1]) {
    await expect(row(page, rank)).toHaveAttribute('data-state', 'idle');
  }
}

/** The error links to its entry in the documentation, by keyboard too: Enter in a notebook would edit the cell. */
async function expectHelp(page: Page, node: Locator): Promise<void> {
  const entry = 'https://jupyter-dist.readthedocs.io/en/latest/troubleshooting.html#rank_dead';
  await page.context().route('https://jupyter-dist.readthedocs.io/**', route => route.fulfill({ body: 'the entry' }));
  const link = node.getByRole('link', { name: 'Help for the error rank_dead' });
  await expect(link).toHaveAttribute('href', entry);
  await expect(link).toHaveCSS('text-decoration-line', 'underline');
  await link.focus();
  const opened = page.waitForEvent('popup');
  await page.keyboard.press('Enter');
  const tab = await opened;
  await expect(tab).toHaveURL(entry);
  await tab.close();
}

test('a killed rank is named in the cell, the rank output and the sidebar, and replaced', async ({ page, request }) => {
  lab.writeNotebook('death.ipynb', [
    'kept = 40 + rank\nprint("kept is", kept)',
    'import time\nprint("begun")\nif rank == 1: time.sleep(1000)',
    'print("still", globals().get("kept", "nothing"))'
  ]);
  await lab.openNotebook(page, 'death.ipynb');
  await command(page, 'jupyter-dist:show-sidebar');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).summary).toContainText('2 ranks \u00b7 ok');
  await command(page, 'jupyter-dist:open-log', { group: lab.GROUP, rank: 1 });
  await expect(page.getByRole('log', { name: 'Output of rank 1' })).toContainText('kept is 41');

  // Idle.
  await kill(request, 1);
  await expectNamed(page);
  await page.getByRole('tab', { name: 'death.ipynb' }).click();
  await lab.runCell(page, 2);
  const refused = lab.cell(page, 2).node;
  await expect(refused).toContainText(/Rank 1 was killed.*Run on the other ranks.*, replace .*, or restart/s);
  // From the cell that misses it, by keyboard.
  const button = refused.getByRole('button', { name: 'Replace rank 1' });
  await button.focus();
  await page.keyboard.press('Enter');
  await replaceByDialog(page, 'Nothing');
  await expect(button).toBeHidden();
  await expect(refused.locator('.jpd-Ranks-advice')).toBeHidden();
  // What is over tomorrow is not in the file.
  await expect(refused.locator('.jp-OutputArea-output')).toContainText('Rank 1 was killed');
  await expect(refused.locator('.jp-OutputArea-output')).not.toContainText('Run on the other ranks');
  for (const rank of [0, 1]) {
    await expect(row(page, rank)).toHaveAttribute('data-state', 'idle');
  }
  await lab.runCell(page, 2);
  await expect(lab.cell(page, 2).items).toHaveText([/still 40/, /still nothing/]);

  // In a cell.
  await lab.runCell(page, 1);
  await expect(lab.cell(page, 1).items.first()).toContainText('begun');
  await kill(request, 1);
  const { node, summary } = lab.cell(page, 1);
  await expect(summary).toContainText('rank 1 lost');
  await expect(node).toContainText(CAUSE);
  await expect(node).toContainText(MEMORY);
  await expect(node).toContainText(/Run on the other ranks, replace .*, or restart/);
  await expectHelp(page, node);
  await expect(node.getByRole('button', { name: 'Replace rank 1' })).toBeVisible();
  await command(page, 'jupyter-dist:open-log', { group: lab.GROUP, rank: 1 });
  await expectNamed(page);
  await replace(page);
  await page.getByRole('tab', { name: 'death.ipynb' }).click();
  await expect(node.getByRole('button', { name: 'Replace rank 1' })).toBeHidden();
  await lab.runCell(page, 2);
  await expect(lab.cell(page, 2).items).toHaveText([/still 40/, /still nothing/]);
});

test('a rank that no interrupt ends is named in its cell, and killed from there', async ({ page }) => {
  lab.writeNotebook('stubborn.ipynb', [
    'import time\nif rank == 1:\n    while True:\n        try: time.sleep(1000)\n        except BaseException: pass',
    'import torch.distributed as dist\nif rank == 0: dist.barrier()'
  ]);
  await lab.openNotebook(page, 'stubborn.ipynb');
  const [stubborn, alone] = [lab.cell(page, 0), lab.cell(page, 1)];
  const note = stubborn.node.locator('.jpd-RankNotes-line');
  await lab.runCell(page, 0);
  await expect(stubborn.summary).toContainText('rank 1 running');
  await expect(note).toHaveCount(0);
  await lab.execute(page, 'notebook:interrupt-kernel');
  await expect(note).toHaveText(/^rank 1: Interrupted \d+ s ago\. Still in .*sleep/);
  await note.getByRole('button', { name: 'Kill rank 1\u2026' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Kill' }).click();
  await expect(stubborn.summary).toContainText('rank 1 lost');
  await expect(note).toHaveCount(0);

  // A collective that one rank is alone in.
  await page.request.post(`/jupyter-dist/api/groups/${lab.GROUP}/restart`);
  await lab.runCell(page, 1);
  const card = alone.node.locator('.jpd-Verdict');
  await expect(card).toContainText('Cannot end: rank 0 called what rank 1 did not call and, being idle, will not');
  await expect(card.locator('li')).toHaveText([
    /^rank 0 waits in barrier, number \d+ \u00b7 line 2 of cell \[\d+\]: if rank == 0: dist\.barrier\(\)$/,
    /^rank 1 idle \u00b7 since cell \[\d+\]$/
  ]);
  await expect(alone.node.locator('.jpd-RankNotes-line')).toHaveCount(0);
  await card.getByRole('button', { name: 'Interrupt these ranks' }).click();
  await expect(alone.summary).toContainText('rank 0 interrupted, rank 1 ok');
  await expect(card).toBeHidden();
});
