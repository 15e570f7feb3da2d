/** Groups that outlive what they hold: saving, restoring, parking and resuming from the page. */
import { APIRequestContext, Locator, Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, openLab, run, startGroup } from './ranks';

const EXECUTIONS = `/jupyter-dist/api/groups/${lab.GROUP}/executions`;

const dialog = (page: Page, title: string): Locator => page.getByRole('dialog').filter({ hasText: title });
const toast = (page: Page, text: string | RegExp): Locator =>
  page.locator('.Toastify__toast').filter({ hasText: text });

/** Run code on all ranks, and wait until it has ended well. */
async function check(
  request: APIRequestContext,
  code: string,
  { group = lab.GROUP, ...options }: { group?: string; keep_undo?: boolean } = {}
): Promise<void> {
  const url = `/jupyter-dist/api/groups/${group}/executions`;
  const { id } = await (await request.post(url, { data: { code, ...options } })).json();
  const view = await (await request.get(`${url}/${id}?wait=60`)).json();
  expect(view.execution.state, JSON.stringify(view.items)).toBe('ok');
}

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('a group on CPU is parked in files after a question, and resumed by its button, twice', async ({
  page,
  request
}) => {
  await run(
    request,
    lab.GROUP,
    'big = torch.ones(1024, 1024) * (rank + 1)\npart = big[:2]\nimport numpy\nshared = torch.from_numpy(numpy.ones(131072))',
    { wait: true }
  );
  await openLab(page);
  await command(page, 'jupyter-dist:show-sidebar');
  const card = page.getByRole('region', { name: `Group ${lab.GROUP}` });
  const resume = card.getByRole('button', { name: 'Resume', exact: true });
  for (let time = 0; time < 2; time++) {
    await expect(card).toHaveAttribute('data-state', 'ready');
    await expect(resume).toHaveCount(0);
    await command(page, 'jupyter-dist:park', { group: lab.GROUP });
    const dialog = page.getByRole('dialog');
    await expect(dialog).toContainText('Its ranks hold no devices.');
    await dialog.getByRole('button', { name: 'Park in Files' }).click();
    await expect(card.locator('.jpd-Group-summary')).toHaveText('2 ranks, parked, 8.00 MB in files');
    await expect(card.getByText('1 MiB stay where they are')).toHaveCount(1);
    await resume.focus();
    await page.keyboard.press('Enter');
  }
  await expect(card).toHaveAttribute('data-state', 'ready');
  const code = 'part.zero_()\nassert big.sum().item() == 1022 * 1024 * (rank + 1)';
  const { id } = await (await request.post(EXECUTIONS, { data: { code } })).json();
  const view = await (await request.get(`${EXECUTIONS}/${id}?wait=30`)).json();
  expect(view.execution.state).toBe('ok');
});

test('a group is saved, shows what the save lacks, and is restored with the cell that made it', async ({
  page,
  request
}) => {
  await check(request, 'weights = torch.full((1000,), float(rank))\nsame = weights[:10]');
  await check(request, 'lines = (line for line in ["a", "b"])');
  await openLab(page);
  await command(page, 'jupyter-dist:save', { group: lab.GROUP });
  const save = dialog(page, 'Save train');
  await expect(save.getByRole('list', { name: 'Cannot be saved' }).getByRole('listitem')).toContainText([
    /lines.*generator.*ranks 0-1, made by cell \[\d+\]/
  ]);
  const name = save.getByLabel('Name');
  await expect(name).toBeFocused();
  await name.fill('not a name');
  await page.keyboard.press('Enter');
  await expect(save.getByRole('alert')).toBeVisible();
  await save.getByLabel('Name').fill('before-sweep');
  await page.keyboard.press('Enter');
  await expect(toast(page, /Saved train as before-sweep: .*1 name could not be saved/)).toBeVisible();

  await check(request, 'weights.zero_(); later = 1; del lines');
  await command(page, 'jupyter-dist:saves', { group: lab.GROUP });
  const saves = dialog(page, 'Saves for train');
  const row = saves.getByRole('listitem').filter({ hasText: 'before-sweep' });
  await expect(row).toContainText(/train, 2 ranks .* lacks 1 name/);
  await expect(saves.locator(':focus')).toHaveCount(1); // which a dialog takes after it is shown
  await row.getByRole('button', { name: 'Restore before-sweep' }).focus();
  await page.keyboard.press('Enter');
  await dialog(page, 'Restore before-sweep in train?').getByRole('button', { name: 'Restore' }).click();
  const again = dialog(page, 'before-sweep is restored');
  await expect(again.getByRole('listitem')).toContainText([/on ranks 0-1: lines/]);
  await again.getByRole('button', { name: 'Run the Checked Cells' }).click();
  await expect(toast(page, /ran again/)).toBeVisible();
  await check(
    request,
    'assert weights.sum() == 1000 * rank and same.data_ptr() == weights.data_ptr() and "later" not in globals()\nassert next(lines) == "a"; del lines'
  );

  await command(page, 'jupyter-dist:saves', { group: lab.GROUP });
  await row.getByRole('button', { name: 'Delete before-sweep' }).click();
  await dialog(page, 'Delete the save').getByRole('button', { name: 'Delete' }).click();
  await expect(saves).toContainText('There is no save in');
  await expect(saves.getByRole('button', { name: 'Close' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(saves).toHaveCount(0);
});

test('a cell is undone from its header with the cells after it, and from its menu, and done again', async ({
  page,
  request
}) => {
  lab.writeNotebook('undo.ipynb', [
    'values = torch.ones(4) * (rank + 1)\nfirst = values',
    'values.mul_(-7)\nplaces = (place for place in [1])\nnext(places)',
    'extra = 1\nnext(places, None)',
    'print(values.tolist(), values is first, "extra" in globals())'
  ]);
  await lab.openNotebook(page, 'undo.ipynb');
  const cells = [0, 1, 2, 3].map(index => lab.cell(page, index));
  const undo = (index: number): Locator => cells[index].node.getByRole('button', { name: 'Undo\u2026' });
  await lab.runCell(page, 0);
  await expect(cells[0].summary).toContainText('ok');
  await expect(undo(0)).toHaveCount(0);
  await command(page, 'jupyter-dist:keep-undo');
  await lab.runCell(page, 1);
  await lab.runCell(page, 2);
  await expect(undo(2)).toHaveAttribute('title', /Keeping that took .*B and .*s before the cell/);

  // By keyboard, to the dialog and back.
  await undo(1).focus();
  await page.keyboard.press('Enter');
  const both = dialog(page, 'Undo 2 cells?');
  await expect(both.getByRole('list', { name: 'Cells to undo' }).getByRole('listitem')).toHaveCount(2);
  await expect(both).toContainText('Not undone: files, prints, the network and other processes.');
  await expect(both.getByRole('list', { name: 'Not undone', exact: true })).toContainText('places');
  await expect(both.getByRole('button', { name: 'Undo', exact: true })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(both).toHaveCount(0);
  await expect(undo(1)).toBeFocused();
  await page.keyboard.press('Enter');
  await both.getByRole('button', { name: 'Undo', exact: true }).click();
  await expect(toast(page, 'Undone: cells')).toBeVisible();
  for (const { node } of cells.slice(1, 3)) {
    await expect(node.locator('.jpd-RowNote-undone')).toHaveText(/Undone at \d/);
  }
  // What they had left comes back, and is undone again.
  await cells[2].node.getByRole('button', { name: 'Redo' }).click();
  await expect(toast(page, 'Done again: cells')).toBeVisible();
  await expect(cells[1].node.locator('.jpd-RowNote-undone')).toHaveCount(0);
  await check(request, 'assert extra == 1 and first.tolist() == [-7 * (rank + 1)] * 4', { keep_undo: true });
  await undo(1).focus();
  await page.keyboard.press('Enter');
  await dialog(page, 'Undo 3 cells?').getByRole('button', { name: 'Undo', exact: true }).click();
  await expect(cells[2].node.locator('.jpd-RowNote-undone')).toBeVisible();
  await lab.runCell(page, 3);
  await expect(cells[3].items).toHaveText([/\[1\.0 \u00b7 2\.0, .*\] True False/]);

  // The same again in the same group; what was undone stays so on a page that is loaded again.
  await lab.runCell(page, 1);
  await expect(undo(1)).toBeVisible();
  await cells[1].node.locator('.jp-InputPrompt').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Undo Cell on Ranks\u2026' }).click();
  await dialog(page, 'Undo cell [').getByRole('button', { name: 'Undo', exact: true }).click();
  await expect(cells[1].node.locator('.jpd-RowNote-undone')).toBeVisible();
  await lab.saveNotebook(page);
  await lab.reload(page);
  await expect(cells[1].node.locator('.jpd-RowNote-undone')).toBeVisible();
  await expect(cells[2].node.locator('.jpd-RowNote-undone')).toBeVisible();
});

test('a group is resized after a question about what ranks do not have alike, and goes on without a dead rank', async ({
  page,
  request
}) => {
  const group = `/jupyter-dist/api/groups/${lab.GROUP}`;
  await check(request, 'alike = torch.ones(3)\nmine = [rank]');
  await openLab(page);
  await command(page, 'jupyter-dist:show-sidebar');
  const card = page.getByRole('region', { name: `Group ${lab.GROUP}` });
  await expect(card).toHaveAttribute('data-state', 'ready');
  await command(page, 'jupyter-dist:resize', { group: lab.GROUP });
  const ranks = dialog(page, 'Resize train').getByLabel('Ranks');
  await expect(ranks).toBeFocused();
  await ranks.fill('3');
  await page.keyboard.press('Enter');
  const differ = dialog(page, 'Ranks of train do not have everything alike');
  await expect(differ.getByRole('list', { name: 'Names' })).toContainText('mine');
  await expect(differ.getByRole('button', { name: 'Keep the Size' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(differ).toHaveCount(0);
  await expect(card.getByRole('list', { name: 'Ranks of train' }).getByRole('listitem')).toHaveCount(2);

  await command(page, 'jupyter-dist:resize', { group: lab.GROUP, ranks: 3 });
  await differ.getByRole('button', { name: 'Copy from Rank 0' }).click();
  await expect(toast(page, 'train has 3 ranks now.')).toBeVisible();
  await check(request, 'assert world_size == 3 and alike.sum() == 3 and mine == ([1] if rank == 1 else [0])');

  expect((await request.post(`${group}/ranks/1/kill`, { data: {} })).ok()).toBe(true);
  await card.getByRole('button', { name: 'Go on with the other 2 ranks' }).click();
  await expect(toast(page, 'train has 2 ranks now.')).toBeVisible();
  await check(request, 'assert world_size == 2 and mine == [0]');
});

test('a dead rank is replaced with its variables of a save, with copies, by running its cells again, and with nothing', async ({
  page,
  request
}) => {
  const group = `/jupyter-dist/api/groups/${lab.GROUP}`;
  await request.post(`${group}/restart`, { data: {} }); // its new ranks have missed no cell of other tests
  expect((await (await request.get(`${group}?wait=60&not_state=restarting`)).json()).state).toBe('ready');
  await check(request, 'alike = torch.ones(3)\nmine = [rank]');
  await openLab(page);
  await command(page, 'jupyter-dist:show-sidebar');
  const card = page.getByRole('region', { name: `Group ${lab.GROUP}` });
  const replacing = dialog(page, 'Replace rank 1 of train');
  const kill = async (): Promise<void> => {
    await expect(card).toHaveAttribute('data-state', 'ready');
    expect((await request.post(`${group}/ranks/1/kill`, { data: {} })).ok()).toBe(true);
    await card.getByRole('button', { name: 'Replace dead ranks' }).click();
    await expect(replacing.locator('input:checked')).toBeFocused();
  };

  // There is no save yet. The dialog proposes to run cells again, and opens their list once the rank is there.
  await kill();
  await expect(replacing.getByRole('radio', { name: /Their variables of the last save/ })).toBeDisabled();
  await expect(replacing.getByRole('radio', { name: /run the cells that they have missed/ })).toBeChecked();
  await page.keyboard.press('Enter');
  const missed = dialog(page, 'Catch up ranks of train');
  await expect(missed.getByRole('listitem').first()).toContainText('mine = [rank]');
  await missed.getByRole('button', { name: 'Run the Checked Cells' }).click();
  await expect(toast(page, '1 cell ran.')).toBeVisible();
  await check(request, 'assert mine == [rank]');

  // A single rank is left: what ranks have alike cannot be compared, and all of its variables are copied.
  await kill();
  await page.keyboard.press('Escape');
  await expect(replacing).toHaveCount(0);
  await card.getByRole('button', { name: 'Replace dead ranks' }).click();
  await replacing.getByRole('radio', { name: /Copies of all variables of rank 0/ }).check();
  await replacing.getByRole('button', { name: 'Replace' }).click();
  await expect(card.getByRole('status')).toContainText('it has copies of 2 names of rank 0');
  await check(request, 'assert mine == [0] and alike.sum() == 3');

  // It died in a cell that kept undo: the dialog proposes to take that back.
  await request.post(`${group}/executions`, {
    data: { code: 'alike.add_(1)\nif rank == 1: import os; os._exit(9)', keep_undo: true }
  });
  await card.getByRole('button', { name: 'Replace dead ranks' }).click();
  const taken = replacing.getByRole('radio', { name: /Copies of the others, as before cell \[/ });
  await expect(taken).toBeChecked();
  await expect(taken).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(card.getByRole('status')).toContainText('it has copies of 2 names of rank 0');
  await check(request, 'assert mine == [0] and alike.sum() == 3');

  // Its variables of the save, which is proposed, with its age.
  await check(request, 'mine = [rank, "saved"]');
  const saving = await (await request.post(`${group}/saves`, { data: { name: 'for-replace' } })).json();
  const saved = await (await request.get(`${EXECUTIONS}/${saving.id}?wait=60`)).json();
  expect(saved.execution.state, JSON.stringify(saved)).toBe('ok');
  await kill();
  const ofSave = replacing.getByRole('radio', { name: /Their variables of the save for-replace \(.*, just now\)/ });
  await expect(ofSave).toBeChecked();
  await page.keyboard.press('Enter');
  await expect(card.getByRole('status')).toContainText("it has its variables of the save 'for-replace'");
  await check(request, 'assert mine == [rank, "saved"]');
  expect((await request.delete('/jupyter-dist/api/saves/for-replace')).ok()).toBe(true);
});

test('a notebook is saved in the middle, its group ends, starts as it was, and gets the same losses', async ({
  page,
  request
}) => {
  const sources = [
    'torch.manual_seed(3)\nmodel = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\nlosses = []',
    'def step():\n    optimizer.zero_grad()\n    loss = model(torch.randn(4, 8)).square().mean()\n    loss.backward()\n    optimizer.step()\n    losses.append(loss.item())\nfor _ in range(5): step()',
    'for _ in range(5): step()',
    'if rank == 0: print("losses", losses)'
  ];
  const setup = 'import torch.nn as nn';
  for (const source of [setup, ...sources]) {
    await check(request, source);
  }
  await check(request, 'globals().pop("places", None)'); // of the undone cell: it would be offered after the restore
  lab.writeNotebook('middle.ipynb', [`${setup}\n${sources[0]}`, ...sources.slice(1)]);
  await lab.openNotebook(page, 'middle.ipynb');
  const last = lab.cell(page, 3);
  await lab.runCell(page, last);
  await expect(last.items).toContainText([/losses \[(\d.*, ){9}\d.*\]/]);
  const [undisturbed] = /\[.*\]/.exec(await lab.shownText(last))!;
  await check(request, 'del model, losses');

  for (const index of [0, 1]) {
    await lab.runCell(page, index);
    await expect(lab.cell(page, index).summary).toContainText('ok');
  }
  await command(page, 'jupyter-dist:save', { group: lab.GROUP });
  await expect(dialog(page, 'Save train').getByLabel('Name')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(toast(page, /Saved train as train-/)).toBeVisible();
  await lab.shutdownGroup(request);
  const { node, summary } = lab.cell(page, 2);
  await lab.runCell(page, 2);
  await node.getByRole('button', { name: /^Start as it was at/ }).click();
  await expect(toast(page, /Restored train-/)).toBeVisible();
  await lab.runCell(page, 2);
  await expect(summary).toContainText('ok');
  await check(request, `assert rank > 0 or losses == ${undisturbed}, losses`);
});

test.describe('a group of 8 ranks', () => {
  const NAME = 'eight';
  const url = `/jupyter-dist/api/groups/${NAME}`;

  test.beforeAll(async ({ request }) => startGroup(request, NAME, 8));
  test.afterAll(async ({ request }) => void (await request.delete(url)));

  test('rank 3 is replaced with copies of what the others have alike, and the group resized from the picker', async ({
    page,
    request
  }) => {
    await check(request, 'alike = torch.ones(3)\nmine = [rank]', { group: NAME });
    lab.writeNotebook('eight.ipynb', ['print(world_size)'], lab.onRanks('all', NAME));
    await lab.openNotebook(page, 'eight.ipynb');
    await command(page, 'jupyter-dist:show-sidebar');
    const card = page.getByRole('region', { name: `Group ${NAME}` });
    expect((await request.post(`${url}/ranks/3/kill`, { data: {} })).ok()).toBe(true);
    // First of the agent, then of the page: which of the two is late is to be named.
    expect((await (await request.get(`${url}?wait=60&not_state=ready`)).json()).state).toBe('degraded');
    await expect(card).toHaveAttribute('data-state', 'degraded');
    await command(page, 'jupyter-dist:replace', { group: NAME });
    const replacing = dialog(page, `Replace rank 3 of ${NAME}`);
    await replacing.getByRole('radio', { name: /Copies of what the other ranks have alike/ }).check();
    await replacing.getByRole('button', { name: 'Replace' }).click();
    await expect(card.getByRole('status')).toContainText('mine differs between the other ranks');
    await check(request, 'assert alike.sum() == 3 and globals().get("mine") == (None if rank == 3 else [rank])', {
      group: NAME
    });

    await lab.chooseAction(page, 'Resize\u2026');
    const size = dialog(page, `Resize ${NAME}`).getByLabel('Ranks');
    await expect(size).toBeFocused();
    await size.fill('4');
    await page.keyboard.press('Enter');
    await dialog(page, 'do not have everything alike').getByRole('button', { name: 'Resize All the Same' }).click();
    await expect(toast(page, `${NAME} has 4 ranks now.`)).toBeVisible();
    await lab.runCell(page, 0);
    await expect(lab.cell(page, 0).items).toHaveText([/ranks 0-3\s*4/]);
  });
});
