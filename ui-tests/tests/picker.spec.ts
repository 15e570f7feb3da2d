import { Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';

test.beforeAll(({ request }) => lab.startGroup(request, 4));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const rank = (page: Page, number: number) => page.getByRole('button', { name: `Rank ${number}, idle` });

test('ranks are chosen by toggles and expressions, and remembered', async ({ page }) => {
  lab.writeNotebook('pick.ipynb', ['print("ran on", rank)'], {});
  await lab.openNotebook(page, 'pick.ipynb');
  const toolbar = page.locator('.jp-NotebookPanel-toolbar');
  const height = (await toolbar.boundingBox())!.height;
  await lab.chooseTarget(page, lab.GROUP);
  await expect(lab.picker(page)).toHaveText('train \u00b7 4 of 4');
  await lab.openRanks(page);
  const field = page.getByLabel('Rank expression');
  await expect(field).toHaveValue('all');
  expect((await toolbar.boundingBox())!.height).toBe(height);
  // No kernel says which language it is.
  await expect(lab.cell(page, 0).node.locator('.cm-content span', { hasText: '"ran on"' })).toHaveCount(1);

  await rank(page, 2).click();
  await expect(field).toHaveValue('2');
  await rank(page, 3).click();
  await expect(field).toHaveValue('2-3');
  await expect(rank(page, 2)).toHaveAttribute('aria-pressed', 'true');
  await expect(rank(page, 0)).toHaveAttribute('aria-pressed', 'false');

  await field.fill('0-9');
  await expect(page.locator('.jpd-ExpressionField-error')).toContainText(
    "There is no rank 9 ('0-9'). This group has ranks 0 to 3."
  );
  expect((await toolbar.boundingBox())!.height).toBe(height);
  await field.fill('::2');
  await field.press('Enter');
  await expect(rank(page, 2)).toHaveAttribute('aria-pressed', 'true');
  await expect(rank(page, 3)).toHaveAttribute('aria-pressed', 'false');
  await page.keyboard.press('Escape');
  await expect(lab.picker(page)).toHaveText('train \u00b7 0,2');

  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect.poll(() => lab.shownText(cell)).toBe('ran on 0\nran on 2\n');

  await lab.saveNotebook(page);
  expect(lab.readNotebook('pick.ipynb').metadata.jupyter_dist).toMatchObject({
    group: lab.GROUP,
    ranks: '::2'
  });
});

test('the picker is used by keyboard alone', async ({ page }) => {
  lab.writeNotebook('keys.ipynb', ['print(rank)'], lab.onRanks());
  await lab.openNotebook(page, 'keys.ipynb');
  await lab.cell(page, 0).editor.click();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Alt+Shift+R');
  const picker = lab.picker(page);
  await expect(picker).toBeFocused();
  await expect(picker).toHaveAccessibleName('Run cells on: train, ranks 0-3 (4 of 4)');
  await expect(page.locator('.jpd-Hint')).toContainText('a group of torch.distributed processes, called ranks');
  await expect(picker).toHaveAccessibleDescription(/a group of torch.distributed processes, called ranks/);
  await page.keyboard.press('Enter');
  await expect(rank(page, 0)).toBeFocused();
  await page.keyboard.press('ArrowRight');
  await expect(rank(page, 1)).toBeFocused();
  await page.keyboard.press('Space');
  await expect(page.getByLabel('Rank expression')).toHaveValue('1');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('button', { name: 'All', exact: true })).toBeFocused();
  await page.keyboard.press('Tab');
  const field = page.getByLabel('Rank expression');
  await expect(field).toBeFocused();
  await expect(page.locator('.jpd-Hint')).toContainText('A rank expression selects ranks: all, 0, 0-3');
  await expect(field).toHaveAccessibleDescription(/A rank expression selects ranks/);
  await page.keyboard.press('Control+A');
  await page.keyboard.type('!0');
  await page.keyboard.press('Enter');
  await expect(rank(page, 3)).toHaveAttribute('aria-pressed', 'true');
  await expect(rank(page, 0)).toHaveAttribute('aria-pressed', 'false');
  // Back to the notebook, whose own keys work again.
  await page.keyboard.press('Escape');
  await expect(lab.ranksDialog(page)).toHaveCount(0);
  await page.keyboard.press('Control+Enter');
  await expect(lab.cell(page, 0).summary).toContainText('3 ranks \u00b7 ok');

  // To a target: arrow keys only move the focus, and Tab stays in the panel.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Alt+Shift+R');
  await page.keyboard.press('ArrowDown');
  await expect(rank(page, 0)).toBeFocused();
  await page.keyboard.press('Shift+Tab');
  const dialog = lab.ranksDialog(page);
  const target = (name: string) => dialog.getByRole('radio', { name });
  await expect(target('train (4 ranks, ready)')).toBeFocused();
  await page.keyboard.press('Shift+Tab');
  await expect(dialog.getByRole('button', { name: 'Start group\u2026' })).toBeFocused();
  await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowUp');
  await expect(target('Kernel')).toBeFocused();
  await expect(target('train (4 ranks, ready)')).toBeChecked();
  await page.keyboard.press('Space');
  await expect(target('Kernel')).toBeChecked();
  await page.keyboard.press('Escape');
  await expect(picker).toHaveAccessibleName('Run cells on: Kernel');
});

test('what can be done with the group is in the panel, and in the menu that it opens', async ({ page }) => {
  lab.writeNotebook('acts.ipynb', ['print(rank)'], lab.onRanks());
  await lab.openNotebook(page, 'acts.ipynb');
  await lab.openRanks(page);
  const actions = page.getByRole('group', { name: 'Actions on train' });
  await expect(actions.getByRole('button')).toHaveText([
    'New console',
    'Variables',
    'Timeline',
    'Resize\u2026',
    'More\u2026'
  ]);
  await actions.getByRole('button', { name: 'More\u2026' }).click();
  const menu = page.getByRole('menu', { name: 'Actions on train' });
  await expect(menu).toContainText('Replace Dead Ranks');
  await expect(menu).toContainText('Shut Down train\u2026');
  await expect(menu).not.toContainText('Empty'); // nothing to empty on CPU
  await page.keyboard.press('Escape');
  await expect(menu).toHaveCount(0);
  await expect(lab.picker(page)).toBeFocused();
  await lab.chooseAction(page, 'Resize\u2026');
  const resize = page.getByRole('dialog').filter({ hasText: 'Resize train' });
  await resize.getByRole('button', { name: 'Cancel' }).click();
});

test('a cell can have ranks of its own, and shows it', async ({ page }) => {
  lab.writeNotebook('own.ipynb', ['print("a", rank)', 'print("b", rank)']);
  await lab.openNotebook(page, 'own.ipynb');
  const cell = lab.cell(page, 0);
  await cell.editor.click();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Alt+Shift+O');
  await lab.openRanks(page);
  await rank(page, 1).click();
  await page.keyboard.press('Escape');
  await expect(cell.node.locator('.jpd-CellBadge')).toHaveText('rank 1');
  await expect(lab.cell(page, 1).node.locator('.jpd-CellBadge')).toHaveCount(0);

  await lab.execute(page, 'notebook:run-all-cells');
  await expect(cell.summary).toContainText('1 rank \u00b7 ok');
  await expect(lab.cell(page, 1).summary).toContainText('4 ranks \u00b7 ok');

  // The picker follows the active cell.
  await lab.cell(page, 1).editor.click();
  await expect(lab.picker(page)).toHaveAccessibleName('Run cells on: train, ranks 0-3 (4 of 4)');
  await cell.editor.click();
  await expect(lab.picker(page)).toHaveAccessibleName('Run cells on: train, ranks 1 (1 of 4), this cell only');
  await lab.openRanks(page);
  await page.getByRole('button', { name: 'This cell only', exact: true }).click();
  await expect(cell.node.locator('.jpd-CellBadge')).toHaveCount(0);
  await expect(page.getByLabel('Rank expression')).toHaveValue('all');
  // The same, in the menu of the cell.
  await page.keyboard.press('Escape');
  await cell.editor.click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Choose Ranks for the Selected Cells Only' }).click();
  await expect(cell.node.locator('.jpd-CellBadge')).toHaveText('all ranks');
});

test('ranks that were typed are for the cell or the notebook they were typed for, if another cell is clicked next', async ({
  page
}) => {
  const own = { source: 'print("a", rank)', metadata: { jupyter_dist: { group: lab.GROUP, ranks: '2' } } };
  lab.writeNotebook('typed.ipynb', [own, 'print("b", rank)']);
  await lab.openNotebook(page, 'typed.ipynb');
  const [first, second] = [lab.cell(page, 0), lab.cell(page, 1)];
  const field = page.getByLabel('Rank expression');
  await first.editor.click();
  await lab.openRanks(page);
  await expect(field).toHaveValue('2');
  await field.fill('0-1');
  // Unlike a click into its code, this makes the cell active before the field loses the focus.
  await second.prompt.click();
  await expect(first.node.locator('.jpd-CellBadge')).toHaveText('ranks 0-1');
  await lab.openRanks(page);
  await expect(field).toHaveValue('all');

  await field.fill('3');
  await first.prompt.click();
  await lab.openRanks(page);
  await expect(field).toHaveValue('0-1');

  // The field then shows the ranks of the other cell, also if those are the ones that this cell had.
  await field.fill('3');
  await field.press('Enter');
  await expect(first.node.locator('.jpd-CellBadge')).toHaveText('rank 3');
  await field.fill('0-1');
  await second.prompt.click();
  await expect(first.node.locator('.jpd-CellBadge')).toHaveText('ranks 0-1');
  await lab.openRanks(page);
  await expect(field).toHaveValue('3');
  await lab.saveNotebook(page);
  const { metadata, cells } = lab.readNotebook('typed.ipynb');
  expect(metadata.jupyter_dist).toMatchObject({ group: lab.GROUP, ranks: '3' });
  expect(cells.map(cell => cell.metadata.jupyter_dist)).toEqual([{ group: lab.GROUP, ranks: '0-1' }, undefined]);
});

test('a group that is started from the picker is the one its notebook runs on', async ({ page, request }) => {
  lab.writeNotebook('fresh.ipynb', ['print("fresh", rank)'], {});
  await lab.openNotebook(page, 'fresh.ipynb');
  const picker = lab.picker(page);
  try {
    // Cancelled, nothing is chosen.
    await lab.chooseAction(page, 'Start group\u2026');
    const form = page.getByRole('form', { name: 'Start a group of ranks' });
    await expect(form.getByLabel('Name')).toBeFocused();
    await form.getByRole('button', { name: 'Cancel' }).click();
    await expect(picker).toHaveText('Kernel');

    await lab.chooseAction(page, 'Start group\u2026');
    await form.getByLabel('Name').fill('fresh');
    await page.keyboard.press('Enter');
    await expect(picker).toHaveText('fresh \u00b7 2 of 2');
    await expect(picker).toBeFocused();
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await lab.saveNotebook(page);
    expect(lab.readNotebook('fresh.ipynb').metadata.jupyter_dist).toEqual({
      group: 'fresh',
      ranks: 'all',
      start: { num_ranks: 2, environment: 'python3' }
    });
  } finally {
    await request.delete('/jupyter-dist/api/groups/fresh');
  }
});

test('cells complete with the names of their ranks', async ({ page }) => {
  const cells = [
    'import math\nfirst_only, learned = (1 if rank == 0 else None), "\u{1F600}"\nif rank: del first_only',
    '"\u{1F600}"; ',
    'math.'
  ];
  lab.writeNotebook('names.ipynb', cells, lab.onRanks());
  await lab.openNotebook(page, 'names.ipynb');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).summary).toContainText('4 ranks \u00b7 ok');
  const list = page.locator('.jp-Completer-item');
  const complete = async (index: number, before: string) => {
    await lab.cell(page, index).editor.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.type(before);
    await page.keyboard.press('Tab');
  };
  // Positions are in characters, also behind one that is two for JavaScript.
  await complete(1, 'lear');
  await expect(list).toHaveCount(1);
  await expect(list).toContainText('learned');
  await expect(list.locator('.jp-Completer-typeExtended')).toContainText('rank\u00a00');
  await page.keyboard.press('Enter');
  await expect(lab.cell(page, 1).editor).toContainText('"\u{1F600}"; learned');
  await complete(2, 'isq');
  await expect(list).toContainText('isqrt');
  await page.keyboard.press('Escape');
  await complete(2, '\nfirst_o');
  await expect(list).toContainText('first_only');
  await page.keyboard.press('Escape');

  // Of the first rank that the cell goes to.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Alt+Shift+O');
  await lab.openRanks(page);
  await rank(page, 1).click();
  await page.keyboard.press('Escape');
  await expect(lab.cell(page, 2).node.locator('.jpd-CellBadge')).toHaveText('rank 1');
  await complete(2, '\nlear');
  await expect(list.locator('.jp-Completer-typeExtended')).toContainText('rank\u00a01');
  await page.keyboard.press('Escape');
  await complete(2, '\ndel lear');
  await expect(list).toContainText('learned');
  await page.keyboard.press('Escape');
  const answer = page.waitForResponse(
    response => /ranks.1.complete/.test(response.url()) && response.request().postDataJSON().code.endsWith('first_onl')
  );
  await complete(2, '\nfirst_onl');
  expect((await (await answer).json()).matches).toEqual([]);
  await expect(list).toBeHidden();
});
