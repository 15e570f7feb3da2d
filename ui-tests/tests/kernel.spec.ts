import { APIRequestContext } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { endSessions } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(async ({ request }) => {
  await endSessions(request, 'kernel.ipynb');
  await lab.shutdownGroup(request);
});

async function pids(request: APIRequestContext): Promise<number[]> {
  const { ranks } = await (await request.get(`/jupyter-dist/api/groups/${lab.GROUP}`)).json();
  return ranks.map(({ pid }: { pid: number }) => pid);
}

test('the kernel Ranks: output, error, input, interrupt, restart and a reload in the middle of a cell', async ({
  page,
  request
}) => {
  lab.writeNotebook(
    'kernel.ipynb',
    [
      'print("hello")\nprint("I am", rank)\nkept = rank',
      'import time\ntime.sleep(2)\n1 / 0 if rank == 1 else "fine"',
      'print("must not run")',
      'name = input("name? ")\nprint("hello", name)',
      'import time\nprint("begun", flush=True)\ntime.sleep(1000)',
      `print("step", 1, flush=True)\nwhile not __import__("os").path.exists(${JSON.stringify(lab.newPath('go'))}): time.sleep(0.05)\nprint("step", 2)`,
      'kept'
    ],
    {}
  );
  await lab.openNotebook(page, 'kernel.ipynb', { kernel: 'Ranks' });
  await expect(lab.picker(page)).toHaveText('Kernel');

  // The same output as the picker's cells have, from the only group.
  const first = await lab.runCell(page, 0);
  await expect(first.summary).toContainText('train \u00b7 2 ranks \u00b7 ok');
  await expect(first.node).toContainText("Cells run on group 'train' (2 ranks), which keeps its variables.");
  await expect(first.items.first()).toContainText('hello');
  await first.tab('Rank 1, ok').click();
  await expect.poll(() => lab.shownText(first)).toBe('hello\nI am 1\n');

  // An error fails the cell, so that what was queued after it does not run; it is shown once.
  const failed = await lab.runCell(page, 1);
  const after = await lab.runCell(page, 2);
  await expect(failed.summary).toContainText('rank 0 ok, rank 1 error');
  await expect(after.prompt).toHaveText('[ ]:');
  await expect(failed.node.locator('.jp-Cell-outputArea > .jp-OutputArea-child').filter({ visible: true })).toHaveCount(
    1
  );

  const asks = await lab.runCell(page, 3);
  const field = asks.node.getByRole('textbox', { name: 'ranks 0-1 ask: name?' });
  await field.fill('Ada');
  await field.press('Enter');
  await expect(asks.summary).toContainText('2 ranks \u00b7 ok');
  await expect(asks.items.first()).toContainText('hello Ada');
  await expect(asks.node.locator('.jp-Stdin')).toHaveCount(0); // the output asks, and nothing else

  const sleeper = await lab.runCell(page, 4);
  await expect(sleeper.node).toContainText('begun');
  await page.locator('[data-jp-item-name="interrupt"]').click();
  await expect(sleeper.summary).toContainText('interrupted');
  await expect(sleeper.prompt).toHaveText(/^\[\d+\]:$/);

  // A reload in the middle of a cell: the page finds it again, live.
  await lab.saveNotebook(page);
  const running = await lab.runCell(page, 5);
  await expect(running.node).toContainText('step 1');
  await lab.reload(page);
  await expect(running.node).toContainText('step 1');
  await expect(running.summary).toContainText('running');
  lab.writeNotebook('go', []);
  await expect(running.summary).toContainText('ok');
  await expect(running.node).toContainText('step 2');

  // Restart means the ranks; the page's kernel is the same.
  const before = await pids(request);
  await lab.execute(page, 'kernelmenu:restart');
  await page.locator('.jp-Dialog .jp-mod-accept').click();
  await expect.poll(async () => (await pids(request)).some(pid => before.includes(pid))).toBe(false);
  await expect(page.getByText('Ranks | Idle')).toBeVisible();
  const gone = await lab.runCell(page, 6);
  await expect(gone.node).toContainText("Group 'train': 2 new ranks.");
  await expect(gone.node).toContainText('NameError');
  await expect(gone.summary).toContainText('2 ranks \u00b7 error');
});
