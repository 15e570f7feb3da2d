import { Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { address } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test.describe(() => {
  test.use({ ownPage: true }); // a reload opens what the page had open when it last saved that

  test('a cell asks on two ranks: one is answered, the page reloads, the other is answered', async ({ page }) => {
    lab.writeNotebook('ask.ipynb', ['name = input("name? ")\nprint("hello", name)']);
    await lab.openNotebook(page, 'ask.ipynb');
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    const both = cell.node.getByRole('textbox', { name: 'ranks 0-1 ask: name?' });
    await expect(both).toBeFocused();
    await cell.node.getByLabel('Ranks to answer').selectOption('answer rank 1');
    await both.fill('Ada');
    await both.press('Enter');
    const one = cell.node.getByRole('textbox', { name: 'rank 0 asks: name?' });
    await expect(one).toHaveValue('');
    await expect(cell.items.first()).toContainText('hello Ada');
    await expect(cell.items.first()).toContainText('rank 1');

    // The tab of the rank that asks is marked.
    await expect(cell.tab('Rank 0')).toHaveAttribute('aria-label', /^Rank 0, running .*, asks for input$/);
    await expect(cell.tab('Rank 1')).toHaveAttribute('data-asks', 'false');

    // Only the tab of the rank that asks has the field, beside the folded view.
    await cell.node.getByRole('tab', { name: 'Rank 1' }).click();
    await expect(one).toBeHidden();
    await cell.node.getByRole('tab', { name: 'Rank 0' }).click();
    await expect(one).toBeVisible();

    await lab.saveNotebook(page);
    await lab.reload(page);
    await one.fill('Bob');
    await one.press('Enter');
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(one).toHaveCount(0);
    expect(await lab.shownText(cell)).toContain('name? Bob');
  });
});

test('a password is hidden, and in no file; an interrupt ends a question', async ({ page }) => {
  lab.writeNotebook('secret.ipynb', ['import getpass\nlen(getpass.getpass("token: "))', 'input("never? ")']);
  await lab.openNotebook(page, 'secret.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell, 'Shift+Enter');
  const field = cell.node.locator('.jpd-Prompt-input');
  await expect(field).toBeFocused();
  await expect(field).toHaveAttribute('type', 'password');
  await page.keyboard.type('hunter2');
  await page.keyboard.press('Enter');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect(cell.items.first()).toContainText('token: \u00b7\u00b7\u00b7\u00b7');

  const second = lab.cell(page, 1);
  await lab.runCell(page, second);
  await expect(second.node.getByRole('textbox', { name: 'ranks 0-1 ask: never?' })).toBeFocused();
  await lab.execute(page, 'notebook:interrupt-kernel');
  await expect(second.summary).toContainText('interrupted');
  await expect(second.node.locator('.jpd-Prompt')).toHaveCount(0);
  await lab.saveNotebook(page);
  expect(JSON.stringify(lab.readNotebook('secret.ipynb'))).not.toContain('hunter2');
});

test('a debugger takes commands for all ranks', async ({ page }) => {
  lab.writeNotebook('debug.ipynb', ['def f(x):\n    breakpoint()\n    return x + 1\nf(rank * 10)']);
  await lab.openNotebook(page, 'debug.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  const field = cell.node.getByRole('textbox', { name: 'ranks 0-1 ask: (Pdb)' });
  await expect(field).toBeFocused();
  await page.keyboard.type('p x + 5');
  await page.keyboard.press('Enter');
  await expect.poll(() => lab.shownText(cell)).toContain('15');
  await expect(field).toHaveValue('');
  await expect(field).toBeFocused();
  await page.keyboard.type('c');
  await page.keyboard.press('Enter');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  expect(await lab.shownText(cell)).toContain('11');
});

test('a question in two pages at once, with nobody there for a while; then a rank is killed at its prompt', async ({
  page,
  context,
  request
}) => {
  lab.writeNotebook('two.ipynb', ['one = input("one? ")\ntwo = input("two? ")\nprint(one, two)']);
  await lab.openNotebook(page, 'two.ipynb');
  await lab.runCell(page, 0);
  const ask = (where: Page, name: string) => lab.cell(where, 0).node.getByRole('textbox', { name });
  await expect(ask(page, 'ranks 0-1 ask: one?')).toBeFocused();
  await lab.saveNotebook(page);
  const other = await context.newPage();
  await other.goto(`${address(other)}/tree/two.ipynb?reset`);
  await lab.sessionReady(other);
  // What one page answers is gone from the other, which kept what was typed there until then.
  await ask(page, 'ranks 0-1 ask: one?').fill('not sent');
  await ask(other, 'ranks 0-1 ask: one?').fill('Ada');
  await ask(other, 'ranks 0-1 ask: one?').press('Enter');
  for (const where of [page, other]) {
    await expect(ask(where, 'ranks 0-1 ask: two?')).toHaveValue('');
    await expect(ask(where, 'ranks 0-1 ask: one?')).toHaveCount(0);
    await expect(lab.cell(where, 0).summary).toContainText('running');
  }
  expect((await request.post(`/jupyter-dist/api/groups/${lab.GROUP}/ranks/1/kill`, { data: {} })).ok()).toBe(true);
  await expect(ask(page, 'rank 0 asks: two?')).toBeVisible();
  await ask(page, 'rank 0 asks: two?').fill('Bob');
  await ask(page, 'rank 0 asks: two?').press('Enter');
  for (const where of [page, other]) {
    await expect(lab.cell(where, 0).summary).toContainText('rank 1 lost');
    await expect(lab.cell(where, 0).node.locator('.jpd-Prompt')).toHaveCount(0);
    await expect(lab.cell(where, 0).items.filter({ hasText: 'Ada Bob' })).toHaveCount(1);
  }
});
