import { expect, test } from './fixtures';
import * as lab from './lab';

test.use({ ownPage: true });

test.describe.configure({ mode: 'serial' });

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('ranks are debugged together and alone, after an error, and to the end', async ({ page }) => {
  lab.writeNotebook('debugging.ipynb', [
    'def f(x):\n    breakpoint()\n    y = x + 1\n    return y\nf(rank * 10)\nafter = 1',
    'after = 1 / 0',
    '%debug'
  ]);
  await lab.openNotebook(page, 'debugging.ipynb');
  const cell = lab.cell(page, 0);
  await cell.editor.click();
  await page.keyboard.press('Control+Enter');
  const both = cell.node.getByRole('textbox', { name: 'ranks 0-1 ask: (Pdb)' });
  await expect(both).toBeFocused();
  await page.keyboard.type('n');
  await page.keyboard.press('Enter');
  await expect.poll(() => lab.shownText(cell)).toContain('return y');
  await expect(both).toHaveValue('');

  // One rank alone; the arrow recalls the command.
  await cell.node.getByLabel('Ranks to answer').selectOption('answer rank 1');
  await both.fill('p y');
  await both.press('Enter');
  await expect.poll(() => lab.shownText(cell)).toContain('11');
  await expect(both).toHaveValue('');
  await cell.node.getByLabel('Ranks to answer').selectOption('answer all');
  await both.press('ArrowUp');
  await expect(both).toHaveValue('p y');
  await both.fill('w');
  await both.press('Enter');
  await expect.poll(() => lab.shownText(cell)).toContain('f(rank * 10)');
  expect(await lab.shownText(cell)).not.toContain('site-packages');
  await expect(both).toHaveValue('');
  await both.fill('q');
  await both.press('Enter');
  await expect(cell.summary).toContainText('error');
  await expect(cell.node).toContainText('the debugger was quit, and the cell with it');

  const failing = lab.cell(page, 1);
  await failing.editor.click();
  await page.keyboard.press('Shift+Enter');
  await expect(failing.summary).toContainText('error');
  const mortem = lab.cell(page, 2);
  await mortem.editor.click();
  await page.keyboard.press('Control+Enter');
  const ipdb = mortem.node.getByRole('textbox', { name: 'ranks 0-1 ask: ipdb>' });
  await expect(ipdb).toBeFocused();
  await ipdb.fill('u');
  await ipdb.press('Enter');
  await expect.poll(() => lab.shownText(mortem)).toContain('Oldest frame');
  await expect(ipdb).toHaveValue('');
  await lab.execute(page, 'notebook:interrupt-kernel');
  await expect(mortem.summary).not.toContainText('running'); // it has ended: the next test debugs idle ranks
  await expect(mortem.node.locator('.jpd-Prompt')).toHaveCount(0);
});

test("JupyterLab's debugger stops both ranks at a breakpoint in a cell, steps, and lets them go", async ({ page }) => {
  const code = 'def f(x):\n    y = x + 1\n    return y\na = f(rank * 10)\nb = a * 2\nprint(b)';
  lab.writeNotebook('panel.ipynb', [code]);
  await lab.openNotebook(page, 'panel.ipynb');
  const bug = page.locator('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-DebuggerBugButton');
  await expect(bug).toHaveAttribute('aria-disabled', 'false');
  await bug.click();
  const cell = lab.cell(page, 0);
  const gutter = cell.node.locator('.cm-gutter.cm-breakpoint-gutter');
  await gutter.locator('.cm-gutterElement').nth(2).click();
  const points = page.locator('.jp-DebuggerBreakpoint');
  await expect(points).toHaveCount(1);
  await cell.editor.click();
  await page.keyboard.press('Control+Enter');
  await lab.execute(page, 'debugger:show-panel');
  const stack = page.locator('.jp-DebuggerCallstackFrame');
  await expect(stack).toHaveCount(2);
  await expect(stack.first()).toContainText(/^f.*:2$/);
  await expect(page.locator('.jp-DebuggerVariables')).toContainText('x');
  await page.screenshot({ path: test.info().outputPath('stopped.png') });
  await lab.execute(page, 'debugger:next');
  await expect(cell.node.locator('.jp-DebuggerEditor-highlight')).toContainText('return y');
  await lab.execute(page, 'debugger:continue');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  expect(await lab.shownText(cell)).toContain('22');
  await lab.execute(page, 'application:toggle-right-area'); // the toolbar has its whole width again
  await bug.click();
  await expect(points).toHaveCount(0);
  await cell.editor.click();
  await page.keyboard.press('Control+Enter');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
});
