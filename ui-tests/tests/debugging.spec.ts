import { expect, test } from './fixtures';
import * as lab from './lab';

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
  await lab.runCell(page, cell);
  const both = cell.node.getByRole('textbox', { name: 'ranks 0-1 ask: (Pdb)' });
  await expect(both).toBeFocused();
  await expect(page.locator('.jpd-Status')).toContainText('2 ask for input');
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
  await lab.runCell(page, failing, 'Shift+Enter');
  await expect(failing.summary).toContainText('2 ranks \u00b7 error');
  const mortem = lab.cell(page, 2);
  await lab.runCell(page, mortem);
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
  lab.writeNotebook('panel.ipynb', [code, 'print(f(5))']);
  await lab.openNotebook(page, 'panel.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  const bug = page.locator(`${lab.SHOWN_NOTEBOOK} .jp-DebuggerBugButton`);
  await expect(bug).toHaveAttribute('aria-disabled', 'false');
  await bug.click();
  const gutter = cell.node.locator('.cm-gutter.cm-breakpoint-gutter');
  await gutter.locator('.cm-gutterElement').nth(2).click();
  const points = page.locator('.jp-DebuggerBreakpoint');
  await expect(points).toHaveCount(1);
  // A function that was defined before the debugger was there.
  const caller = lab.cell(page, 1);
  await lab.runCell(page, caller);
  await expect(caller.summary).toContainText('2 ranks \u00b7 stopped at a breakpoint \u00b7');
  const paused = page.locator('.jp-NotebookPanel .jp-DebuggerPausedOverlay');
  await expect(paused).toHaveText('Paused in Debugger');
  await paused.getByTitle('Continue').click();
  await expect(paused).toHaveCount(0);
  await expect(caller.summary).toContainText('2 ranks \u00b7 ok');
  await lab.runCell(page, cell);
  // The panel has opened by itself.
  const stack = page.locator('.jp-DebuggerCallstackFrame');
  await expect(stack).toHaveCount(2);
  await expect(stack.first()).toBeVisible();
  await expect(stack.first()).toContainText(/^f.*:2$/);
  await expect(page.locator('.jp-DebuggerVariables')).toContainText('x');
  await expect(cell.summary).toContainText('2 ranks \u00b7 stopped at a breakpoint, line 2 \u00b7');
  await expect(page.locator('.jpd-Status')).toContainText('2 stopped at a breakpoint');
  await page.screenshot({ path: test.info().outputPath('stopped.png') });
  await lab.execute(page, 'debugger:next');
  await expect(cell.node.locator('.jp-DebuggerEditor-highlight')).toContainText('return y');
  await lab.execute(page, 'debugger:continue');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  expect(await lab.shownText(cell)).toContain('22');
  await lab.execute(page, 'application:toggle-right-area'); // the toolbar has its whole width again
  await bug.click();
  await expect(points).toHaveCount(0);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
});

test('the panel shows any of the ranks, which step together or alone', async ({ page }) => {
  const code = 'def f(x):\n    y = x + 1\n    return y\na = f(rank * 10)\nif rank == 1: breakpoint()\nb = a * 2';
  lab.writeNotebook('selector.ipynb', [code]);
  await lab.openNotebook(page, 'selector.ipynb');
  const bug = page.locator(`${lab.SHOWN_NOTEBOOK} .jp-DebuggerBugButton`);
  await expect(bug).toHaveAttribute('aria-disabled', 'false');
  await bug.click();
  const cell = lab.cell(page, 0);
  await cell.node.locator('.cm-gutter.cm-breakpoint-gutter .cm-gutterElement').nth(2).click();
  await expect(page.locator('.jp-DebuggerBreakpoint')).toHaveCount(1);
  await lab.runCell(page, cell);
  await lab.execute(page, 'debugger:show-panel');
  const panel = page.locator('.jp-DebuggerSidebar');
  const shown = panel.getByLabel('Rank whose stack, variables and console the panel shows');
  const steps = panel.getByLabel('Ranks that Continue and the steps are for');
  const frames = page.locator('.jp-DebuggerCallstackFrame');
  const variable = (value: string): Promise<void> =>
    expect(panel.locator('.jp-DebuggerVariables')).toContainText(value);
  await expect(panel.getByRole('status')).toHaveText('All 2 ranks are stopped.');
  await expect(panel.locator('h2')).toHaveText('train: rank 0');
  await expect(frames.first()).toHaveText('fIn [*]:2');
  await expect(shown.locator('option')).toHaveText(['rank 0: line 2', 'rank 1: line 2']);

  // The stack and the variables of another rank, in the same cell.
  await shown.selectOption('1');
  await expect(panel.locator('h2')).toHaveText('train: rank 1');
  await variable('10');
  await expect(frames).toHaveCount(2);
  await expect(cell.node.locator('.jp-DebuggerEditor-highlight')).toContainText('y = x + 1');

  // The debug console asks the rank that is shown.
  await lab.execute(page, 'debugger:evaluate');
  const console = page.locator('.jp-DebugConsole');
  // JupyterLab gives the notebook the focus when it has read the stack, which may be in between.
  const evaluate = async (code: string): Promise<void> => {
    const prompt = console.locator('.jp-CodeConsole-promptCell .cm-content');
    await prompt.fill(code);
    await prompt.press('Shift+Enter');
  };
  const answer = console.locator('.jp-OutputArea-output').last();
  await evaluate('x + 5');
  await expect(answer).toHaveText('15');
  await variable('10'); // JupyterLab forgets them with each line
  await shown.selectOption('0');
  await expect(panel.locator('h2')).toHaveText('train: rank 0');
  await variable('x');
  // JupyterLab reads stack and variables of the other rank meanwhile, and may drop what is asked in that moment.
  await expect(async () => {
    await evaluate('x + 6');
    await expect(answer).toHaveText('6', { timeout: 15000 });
  }).toPass();
  await page.locator('.lm-TabBar-tab', { hasText: 'Console' }).locator('.lm-TabBar-tabCloseIcon').click();
  await shown.selectOption('1');
  await variable('10');

  // It steps alone, then both together.
  await steps.selectOption({ label: 'rank 1 alone' });
  await lab.execute(page, 'debugger:next');
  await expect(shown.locator('option')).toHaveText(['rank 0: line 2', 'rank 1: line 3']);
  await variable('11');
  await steps.selectOption({ label: 'all ranks' });
  await lab.execute(page, 'debugger:next');
  await expect(shown.locator('option')).toHaveText(['rank 0: line 3', 'rank 1: line 5']);
  await shown.selectOption('0');
  await variable('x');

  // What nobody looks at is reported, and shown when it is looked at.
  await lab.execute(page, 'debugger:continue');
  await expect(shown.locator('option')).toHaveText(['rank 0', 'rank 1: line 6']);
  await expect(panel.getByRole('status')).toHaveText('1 of 2 ranks is stopped.');
  await shown.selectOption('1');
  await expect(frames).toHaveCount(1);
  await lab.execute(page, 'debugger:continue');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect(panel.getByRole('status')).toHaveText('0 of 2 ranks are stopped.');
});
