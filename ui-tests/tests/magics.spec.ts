import { expect, test } from './fixtures';
import * as lab from './lab';
import { endSessions } from './ranks';

const KERNEL = 'Python 3 (ipykernel)';

test.afterAll(async ({ request }) => {
  for (const name of ['magics', 'quiet']) {
    await request.delete(`/jupyter-dist/api/groups/${name}`);
    await endSessions(request, `${name}.ipynb`);
  }
});

test('cells of magics are as calm as those of the picker, and a hang and an error are said once', async ({ page }) => {
  lab.writeNotebook(
    'quiet.ipynb',
    [
      '%load_ext jupyter_dist',
      '%dist_init -n 2',
      'x = 5',
      'print("same")',
      'x',
      'print("I am", rank)',
      'if rank == 0: dist.barrier()',
      '1 / 0 if rank else 5',
      '# dip_locally\ntry: get_ipython().run_cell_magic("rank", "[0]", "1 / 0")\nexcept Exception: raise ValueError("of the kernel")',
      '%dist_shutdown'
    ],
    {}
  );
  await lab.openNotebook(page, 'quiet.ipynb', { kernel: KERNEL });
  await lab.runCell(page, 0);
  await expect((await lab.runCell(page, 1)).node).toContainText('2 ranks ready');
  for (const [index, text] of [
    [2, ''],
    [3, 'same'],
    [4, '5']
  ] as const) {
    const cell = await lab.runCell(page, index);
    await expect(cell.prompt).toHaveAttribute('title', /quiet \u00b7 2 ranks \u00b7 ok/);
    await expect(cell.ranks.locator('.jpd-Ranks-header')).toHaveCSS('opacity', '0');
    await expect(cell.node.getByText('ranks 0-1', { exact: true })).toBeHidden();
    expect((await cell.ranks.innerText()).includes(text)).toBe(true);
  }
  const differs = await lab.runCell(page, 5);
  await expect(differs.summary).toContainText('quiet \u00b7 2 ranks \u00b7 ok');
  await expect(differs.ranks.locator('.jpd-Ranks-header')).toHaveCSS('opacity', '1');

  const hung = await lab.runCell(page, 6);
  await expect(hung.node.locator('.jpd-Verdict')).toContainText('Cannot end: rank 0 called what rank 1 did not call');
  const said = hung.node.locator('.jp-OutputArea-child').filter({ hasText: /cannot end/i });
  await expect(said.filter({ visible: true })).toHaveCount(1);
  await page.locator('[data-jp-item-name="interrupt"]').click();
  await expect(hung.summary).toContainText('interrupted');
  await expect(hung.node.getByText('KeyboardInterrupt: ').filter({ visible: true })).toHaveCount(1);

  // The cell of the kernel has failed, and its error is in the file: the page shows those of the ranks alone.
  const [failed, own] = [lab.cell(page, 7), lab.cell(page, 8)];
  const expectOneError = async (): Promise<void> => {
    await expect(failed.summary).toContainText('rank 0 ok, rank 1 error');
    await expect(failed.node.getByText('ZeroDivisionError: division by zero').filter({ visible: true })).toHaveCount(1);
    await expect(failed.node.getByText('RankError')).toBeHidden();
    await expect(own.node.getByText('ValueError: of the kernel')).toBeVisible();
  };
  await lab.runCell(page, 7);
  await expect(failed.summary).toContainText('rank 0 ok, rank 1 error');
  // A kernel drops what comes right after an error (`stop_on_error`), also later on a busy machine.
  await expect(async () => {
    await lab.runCell(page, own);
    await expect(own.node.getByText('ValueError: of the kernel')).toBeVisible({ timeout: 10_000 });
  }).toPass();
  await expectOneError();
  await lab.saveNotebook(page);
  expect(JSON.stringify(lab.readNotebook('quiet.ipynb').cells[7].outputs.at(-1))).toContain('"ename":"RankError"');
  await lab.reload(page);
  const saved = lab.cell(page, 6);
  await expect(saved.ranks).toBeVisible();
  await expect(saved.node.getByText('[cannot end]')).toBeHidden();
  await expectOneError();
  await lab.runCell(page, 9);
  await expect(lab.cell(page, 9).node).toContainText("Group 'quiet' has ended");
});

test('a kernel with the magics: folded output, progress, errors, interrupt, restart', async ({ page, request }) => {
  lab.writeNotebook(
    'magics.ipynb',
    [
      '%load_ext jupyter_dist',
      '%dist_init -n 2',
      'x = rank * 10\nprint("hello")\nprint("I am", rank)\nx',
      '%%rank [0]\nprint("only", rank)',
      'from tqdm import tqdm\nimport time\nfor i in tqdm(range(25), mininterval=0): time.sleep(0.1)',
      'time.sleep(1)\n1 / 0 if rank == 1 else "fine"',
      'print("must not run")',
      'print("begun", flush=True)\ntime.sleep(1000)',
      '%dist_mode -d',
      'from jupyter_dist.client import attach\nattach("magics").run("print(f\'run on {rank}\'); x")',
      '%load_ext jupyter_dist',
      '%%distributed\nprint("still", x)',
      '%%distributed\nglobals()["long_na" "me_of_a_rank"] = 7',
      '%%distributed\nlong_na',
      '%dist_shutdown'
    ],
    {}
  );
  await lab.openNotebook(page, 'magics.ipynb', { kernel: KERNEL });
  await lab.runCell(page, 0);
  const init = await lab.runCell(page, 1);
  await expect(init.node).toContainText("Group 'magics': 2 ranks ready");

  // The same output as the picker's cells have.
  const folded = await lab.runCell(page, 2);
  await expect(folded.summary).toContainText('magics \u00b7 2 ranks \u00b7 ok');
  await expect(folded.ranks).toHaveCount(1);
  await expect(folded.items.nth(0)).toContainText('hello');
  await expect(folded.items.nth(0)).toContainText('ranks 0-1');
  await expect(folded.items.nth(1)).toContainText('I am 0');
  await folded.tab('Rank 1, ok').click();
  await expect.poll(() => lab.shownText(folded)).toBe('hello\nI am 1\n10');

  const one = await lab.runCell(page, 3);
  await expect(one.summary).toContainText('1 rank \u00b7 ok');
  expect(await lab.shownText(one)).toBe('only 0\n');

  // A bar is seen while it grows, in one line.
  const bar = await lab.runCell(page, 4);
  await expect(bar.node).toContainText(/\b([1-9]|1\d)\/25/);
  await expect(bar.summary).toContainText('running');
  await expect(bar.node).toContainText('25/25');
  await expect(bar.summary).toContainText('ok');
  await bar.tab('Rank 0, ok').click();
  expect((await lab.shownText(bar)).match(/%\|/g)).toHaveLength(1);

  // An error fails the cell, so that what was queued behind it does not run.
  const failed = await lab.runCell(page, 5);
  const after = await lab.runCell(page, 6);
  await expect(failed.summary).toContainText('rank 0 ok, rank 1 error');
  await expect(failed.node).toContainText('ZeroDivisionError');
  await expect(after.prompt).toHaveText('[ ]:');

  // The kernel's interrupt is the ranks'.
  const sleeper = await lab.runCell(page, 7);
  await expect(sleeper.node).toContainText('begun');
  await page.locator('[data-jp-item-name="interrupt"]').click();
  await expect(sleeper.summary).toContainText('interrupted');
  await expect(sleeper.prompt).toHaveText(/^\[\d+\]:$/);

  // What the client returns is shown in the same way.
  const local = await lab.runCell(page, 8);
  await expect(local.prompt).toHaveText(/^\[\d+\]:$/);
  const result = await lab.runCell(page, 9);
  await expect(result.summary).toContainText('2 ranks \u00b7 ok');
  await expect(result.items.first()).toContainText('run on 0');
  await expect(result.ranks).toHaveCount(1);

  // A restarted kernel finds its group, with every variable.
  await lab.execute(page, 'kernelmenu:restart');
  await page.locator('.jp-Dialog .jp-mod-accept').click();
  await expect(page.getByText(`${KERNEL} | Idle`)).toBeVisible();
  await lab.runCell(page, 10);
  const still = await lab.runCell(page, 11);
  await expect(still.items.first()).toContainText('still 0');
  await expect(still.items.last()).toContainText('still 10');

  // Tab completes what only the ranks know.
  const named = await lab.runCell(page, 12);
  await expect(named.summary).toContainText('2 ranks \u00b7 ok');
  const completed = lab.cell(page, 13);
  await completed.editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.press('Tab');
  await page.locator('.jp-Completer').getByText('long_name_of_a_rank').click();
  await page.keyboard.press('Control+Enter');
  await expect(completed.items.first()).toContainText('7');

  const end = await lab.runCell(page, 14);
  await expect(end.node).toContainText("Group 'magics' has ended");
  const { groups } = await (await request.get('/jupyter-dist/api/groups')).json();
  expect(groups).toEqual([]);
});
