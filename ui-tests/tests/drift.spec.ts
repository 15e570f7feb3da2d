/** Ranks that have missed cells: what a cell's header says, and how they catch up. */
import { APIRequestContext, Locator, Page } from '@playwright/test';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command } from './ranks';

test.beforeEach(({ request }) => lab.startGroup(request));
test.afterEach(({ request }) => lab.shutdownGroup(request));

const GROUP = `/jupyter-dist/api/groups/${lab.GROUP}`;

/** Kill rank 1, and replace it as another program would. */
async function replaceRank(request: APIRequestContext): Promise<void> {
  expect((await request.post(`${GROUP}/ranks/1/kill`, { data: {} })).ok()).toBe(true);
  await expect.poll(async () => (await (await request.get(GROUP)).json()).state).toBe('degraded');
  expect((await request.post(`${GROUP}/replace`, { data: {} })).ok()).toBe(true);
  await expect.poll(async () => (await (await request.get(GROUP)).json()).state).toBe('ready');
}

/** The paths that the page asks for what ranks have missed. */
function questions(page: Page): string[] {
  const seen: string[] = [];
  page.on('request', request => {
    if (new URL(request.url()).pathname.endsWith('/drift')) {
      seen.push(request.url());
    }
  });
  return seen;
}

const drift = ({ node }: { node: Locator }): Locator => node.locator('.jpd-Drift');
const missed = ({ node }: { node: Locator }): Locator =>
  node.getByRole('button', { name: 'Missed by rank 1: catch up\u2026' });
const dialog = (page: Page): Locator => page.getByRole('dialog').filter({ hasText: 'Catch up ranks of train' });

test.describe(() => {
  test.use({ ownPage: true }); // a reload opens what the page had open when it last saved that

  test('a killed rank that was replaced catches up from the cell, and has its variable again', async ({
    page,
    request
  }) => {
    const seen = questions(page);
    lab.writeNotebook('missed.ipynb', [
      'kept = 40 + rank',
      'drawn = True',
      'print("here", globals().get("kept", "nothing"), globals().get("drawn", "nothing"))'
    ]);
    await lab.openNotebook(page, 'missed.ipynb');
    const [kept, drawn, shown] = [0, 1, 2].map(index => lab.cell(page, index));
    await lab.runCell(page, 0);
    await expect(kept.summary).toContainText('2 ranks \u00b7 ok');
    await expect(drift(kept)).toBeHidden();
    await request.post(`${GROUP}/executions`, { data: { code: 'later = 1', ranks: '0' } });
    expect(seen).toEqual([]);

    await replaceRank(request);
    await expect(missed(kept)).toBeVisible();
    const offer = page
      .locator('.jp-toastContainer, .Toastify__toast')
      .filter({ hasText: 'Rank 1 of train was replaced, and has missed 1 cell.' });
    await expect(offer.first()).toBeVisible();
    await lab.runCell(page, 2);
    await expect(shown.items).toHaveText([/here 40 nothing/, /here nothing nothing/]);

    // By keyboard: nothing is sent before it is confirmed.
    const executions = async (): Promise<number> =>
      (await (await request.get(`${GROUP}/executions`)).json()).executions.length;
    const before = await executions();
    await missed(kept).focus();
    await page.keyboard.press('Enter');
    const rows = dialog(page).getByRole('list', { name: 'Missed by ranks that were replaced' }).getByRole('listitem');
    await expect(rows).toHaveCount(1);
    await expect(rows.first()).toContainText('to rank 1');
    await expect(rows.first().locator('pre')).toHaveText('kept = 40 + rank');
    await expect(rows.first().getByRole('checkbox')).toBeChecked();
    await expect(dialog(page).getByText('1 cell ran on other ranks only')).toBeVisible();
    await rows.first().getByRole('checkbox').focus();
    await page.keyboard.press('Enter');
    await expect(dialog(page)).toBeVisible();
    await page.keyboard.press('Escape');
    await expect(dialog(page)).toHaveCount(0);
    expect(await executions()).toBe(before);

    await missed(kept).click();
    await dialog(page).getByRole('button', { name: 'Run the Checked Cells' }).focus();
    await page.keyboard.press('Enter');
    await expect(page.getByText('1 cell ran.').first()).toBeVisible();
    await expect(missed(kept)).toHaveCount(0);
    await expect(offer).toHaveCount(0);
    await lab.runCell(page, 2);
    await expect(shown.items).toHaveText([/here 40 nothing/, /here 41 nothing/]);
    await expect(drift(drawn)).toHaveCount(0);

    // A page that is opened later shows the same, and takes what was sent for no run of the cell.
    await lab.saveNotebook(page);
    await lab.reload(page);
    await expect(kept.summary).toContainText('2 ranks \u00b7 ok');
    await expect(drift(kept)).toBeHidden();
  });
});

test('it stops at the first cell that fails, and says so', async ({ page, request }) => {
  const flag = lab.newPath('not-again');
  lab.writeNotebook('stops.ipynb', [
    'first = 1',
    `import os\nif os.path.exists(${JSON.stringify(flag)}): raise ValueError("not again")`,
    'third = 3'
  ]);
  await lab.openNotebook(page, 'stops.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 2).summary).toContainText('2 ranks \u00b7 ok');
  fs.writeFileSync(flag, '');
  await replaceRank(request);
  await command(page, 'jupyter-dist:show-sidebar');
  await page.getByRole('region', { name: 'Group train' }).getByRole('button', { name: 'Catch up\u2026' }).click();
  await expect(dialog(page).getByRole('checkbox')).toHaveCount(3);
  await dialog(page).getByRole('button', { name: 'Run the Checked Cells' }).click();
  await expect(
    page.getByText('Stopped at [2] import os on rank 1: ValueError: not again 1 cell was not run.').first()
  ).toBeVisible();
  await expect(missed(lab.cell(page, 0))).toHaveCount(0);
  await expect(missed(lab.cell(page, 2))).toBeVisible();
});

test('the cell in which a rank died is not run again unasked, and asked for, its end is said', async ({ page }) => {
  lab.writeNotebook('killer.ipynb', ['kept = 40 + rank', 'import os\nif rank == 1: os._exit(3)']);
  await lab.openNotebook(page, 'killer.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  const state = async (): Promise<string> => (await (await page.request.get(GROUP)).json()).state;
  await expect.poll(state).toBe('degraded');
  await lab.cell(page, 1).node.getByRole('button', { name: 'Replace rank 1' }).click();
  // The default, by Enter.
  const replacing = page.getByRole('dialog').filter({ hasText: 'The new processes begin with' });
  await expect(replacing.getByRole('radio', { name: 'run the cells that they have missed' })).toBeFocused();
  await page.keyboard.press('Enter');
  const rows = dialog(page).getByRole('list', { name: 'Missed by ranks that were replaced' }).getByRole('listitem');
  await expect(rows.nth(0).getByRole('checkbox')).toBeChecked();
  await expect(rows.nth(1)).toContainText('rank 1 died in it');
  await expect(rows.nth(1).getByRole('checkbox')).not.toBeChecked();
  await page.keyboard.press('Enter');
  await expect(page.getByText('1 cell ran.').first()).toBeVisible();
  expect(await state()).toBe('ready');

  await command(page, 'jupyter-dist:catch-up', { group: lab.GROUP });
  await rows.last().getByRole('checkbox').check();
  await dialog(page).getByRole('button', { name: 'Run the Checked Cells' }).click();
  await expect(page.getByText('Stopped at [2] import os on rank 1:').first()).toBeVisible();
  await expect.poll(state).toBe('degraded');
  await expect(page.getByText('Stopped at [2] import os on rank 1:').first()).toBeVisible();
});

test('a cell that needs all ranks is sent to all, or not at all', async ({ page, request }) => {
  lab.writeNotebook('collective.ipynb', ['total = torch.ones(1)\ndist.all_reduce(total)']);
  await lab.openNotebook(page, 'collective.ipynb');
  await lab.runCell(page, 0);
  const { summary, node } = lab.cell(page, 0);
  await expect(summary).toContainText('2 ranks \u00b7 ok');
  await replaceRank(request);
  for (const [answer, said] of [
    ['Stop Here', 'Stopped at [1] total = torch.ones(1) on rank 1.'],
    ['Run on All', '1 cell ran.']
  ]) {
    await missed({ node }).click();
    await dialog(page).getByRole('button', { name: 'Run the Checked Cells' }).click();
    const question = page.getByRole('dialog').filter({ hasText: 'all_reduce needs all 2 ranks, 1 is chosen.' });
    await question.getByRole('button', { name: answer }).click();
    await expect(page.getByText(said).first()).toBeVisible();
  }
  await expect(missed({ node })).toHaveCount(0);
});

test('a cell for some ranks and an edited cell say so, quietly', async ({ page }) => {
  lab.writeNotebook('quiet.ipynb', [
    { source: 'value = 1', metadata: { jupyter_dist: { group: lab.GROUP, ranks: '0' } } },
    'print("value" in globals())'
  ]);
  await lab.openNotebook(page, 'quiet.ipynb');
  const [some, all] = [lab.cell(page, 0), lab.cell(page, 1)];
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(all.items).toHaveText([/True/, /False/]);
  await expect(drift(some)).toHaveText('rank 0 only');
  await expect(drift(all)).toBeHidden();
  await some.editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('0');
  await expect(drift(some)).toContainText('edited since');
  await page.keyboard.press('Backspace');
  await expect(drift(some)).toHaveText('rank 0 only');

  await drift(some).getByRole('button').click();
  const row = dialog(page).getByRole('list', { name: 'Ran on other ranks only' }).getByRole('listitem');
  await expect(row).toContainText('not sent there');
  await expect(row.getByRole('checkbox')).toBeChecked();
  await dialog(page).getByRole('button', { name: 'Run the Checked Cells' }).click();
  await lab.runCell(page, 1);
  await expect(all.items).toHaveText([/True/]);
  await command(page, 'jupyter-dist:catch-up', { group: lab.GROUP });
  await expect(page.getByRole('dialog').filter({ hasText: 'No rank of train has missed a cell' })).toBeVisible();
  await page.keyboard.press('Escape');
});
