import { WebSocketRoute } from '@playwright/test';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { computed } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('a cell runs on all ranks without a kernel', async ({ page }) => {
  lab.writeNotebook(
    'all.ipynb',
    [
      [
        'from IPython.display import HTML',
        'print("hello")',
        'print("I am", rank)',
        'display(HTML(f"<b>bold {rank}</b>"))',
        'rank * 10'
      ].join('\n')
    ],
    {}
  );
  await lab.openNotebook(page, 'all.ipynb');
  const cell = lab.cell(page, 0);
  await lab.chooseTarget(page, lab.GROUP);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await expect(cell.prompt).toHaveText(/^\[\d+\]:$/);

  // Folded: once what both said, then what differs.
  await expect(cell.items.nth(0)).toContainText('hello');
  await expect(cell.items.nth(0)).toContainText('ranks 0-1');
  await expect(cell.items.nth(1)).toContainText('I am 0');
  await expect(cell.items.nth(1)).toContainText('rank 0');
  await expect(cell.items.nth(2)).toContainText('I am 1');
  await expect(cell.node.locator('b')).toHaveText(['bold 0', 'bold 1']);

  // A tab per rank, by keyboard.
  await expect(cell.node.getByRole('tab')).toHaveCount(3);
  await cell.tab('Folded').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await expect(cell.tab('Rank 1, ok')).toBeFocused();
  await expect(cell.tab('Rank 1, ok')).toHaveAttribute('aria-selected', 'true');
  const panel = cell.node.getByRole('tabpanel');
  await expect(panel).toContainText('I am 1');
  await expect(panel).not.toContainText('I am 0');
  await expect(panel).toContainText('10');

  // What "folded" means, by keyboard and for screen readers.
  await page.keyboard.press('Home');
  await expect(cell.tab('Folded')).toBeFocused();
  await expect(cell.node.locator('.jpd-Ranks-hint')).toHaveText(/output that is the same on several ranks/);
  await expect(cell.node.locator('.jpd-Ranks-hint')).toBeVisible();
  await expect(cell.tab('Folded')).toHaveAccessibleDescription(/output that is the same on several ranks/);
  await page.keyboard.press('End');
  await expect(cell.node.locator('.jpd-Ranks-hint')).toBeHidden();

  // The file keeps it, and reads well without the extension.
  await lab.saveNotebook(page);
  const [saved] = lab.readNotebook('all.ipynb').cells;
  const [output] = saved.outputs;
  const bundle = output.data['application/vnd.jupyter-dist.ranks+json'];
  expect(bundle).toMatchObject({ version: 1, ranks: '0-1', state: 'ok' });
  expect(output.data['text/plain'].join('')).toBe('[ranks 0-1]\nhello\n[rank 0]\nI am 0\n[rank 1]\nI am 1\n[rank 0]');
});

test('an error fails the cell and stops Run All', async ({ page }) => {
  lab.writeNotebook('error.ipynb', [
    'x = 1',
    '1 / 0 if rank == 1 else "fine"',
    'print("must not run")',
    'print("nor this")'
  ]);
  await lab.openNotebook(page, 'error.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  const failed = lab.cell(page, 1);
  await expect(failed.summary).toContainText('rank 0 ok, rank 1 error');
  await expect(failed.items.filter({ hasText: 'ZeroDivisionError' })).toHaveCount(1);
  await expect(failed.prompt).toHaveText(/^\[\d+\]:$/);
  for (const index of [2, 3]) {
    const cell = lab.cell(page, index);
    await expect(cell.prompt).toHaveText('[ ]:');
    await expect(cell.ranks).toHaveCount(0);
  }
});

test('a cell that may raise does not stop Run All', async ({ page }) => {
  lab.writeNotebook('mayraise.ipynb', [{ source: '1 / 0', metadata: { tags: ['raises-exception'] } }, 'print("runs")']);
  await lab.openNotebook(page, 'mayraise.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 0).summary).toContainText('error');
  await expect(lab.cell(page, 1).summary).toContainText('2 ranks \u00b7 ok');
});

test('kernel and rank cells run in the order of the notebook', async ({ page }) => {
  const kernel = { jupyter_dist: { target: 'kernel' } };
  const file = lab.newPath('order.txt');
  const note = (who: string, wait: number): string =>
    [
      'import time',
      `time.sleep(${wait})`,
      `if globals().get("rank", 0) == 0:`,
      `    open(${JSON.stringify(file)}, "a").write("${who} ")`
    ].join('\n');
  lab.writeNotebook('mixed.ipynb', [
    { source: note('k0', 0.4), metadata: kernel },
    note('r1', 0.3),
    note('r2', 0),
    { source: note('k3', 0.2), metadata: kernel },
    note('r4', 0)
  ]);
  await lab.openNotebook(page, 'mixed.ipynb', {
    kernel: 'Python 3 (ipykernel)'
  });
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(lab.cell(page, 4).summary).toContainText('ok');
  expect(fs.readFileSync(file, 'utf8')).toBe('k0 r1 r2 k3 r4 ');
});

test.describe(() => {
  test.use({ ownPage: true });

  test("with JupyterLab's setting, a cell on ranks records its timing as one on the kernel does", async ({
    page,
    request
  }) => {
    const settings = '/lab/api/settings/@jupyterlab/notebook-extension:tracker';
    await request.put(settings, { data: { raw: '{"recordTiming": true}' } });
    try {
      const code = 'import time\ntime.sleep(0.3)';
      lab.writeNotebook('timing.ipynb', [{ source: code, metadata: { jupyter_dist: { target: 'kernel' } } }, code]);
      await lab.openNotebook(page, 'timing.ipynb', { kernel: 'Python 3 (ipykernel)' });
      const before = Date.now();
      await lab.execute(page, 'notebook:run-all-cells');
      await expect(lab.cell(page, 1).summary).toContainText('2 ranks \u00b7 ok');
      await lab.saveNotebook(page);
      const [kernel, ranks] = lab
        .readNotebook('timing.ipynb')
        .cells.map(cell => cell.metadata.execution as Record<string, string>);
      expect(Object.keys(ranks).sort()).toEqual(Object.keys(kernel).sort());
      const at = (key: string): number => Date.parse(ranks[key]);
      expect(at('iopub.status.busy')).toBeGreaterThanOrEqual(before - 1000);
      const took = at('shell.execute_reply') - at('shell.execute_reply.started');
      expect(took).toBeGreaterThanOrEqual(299);
      // Seconds are not taken for milliseconds, nor days added: it is no more than this test has seen pass.
      expect(took).toBeLessThanOrEqual(Date.now() - before);
    } finally {
      await request.put(settings, { data: { raw: '{}' } });
    }
  });
});

test('the toolbar interrupts ranks', async ({ page }) => {
  lab.writeNotebook('interrupt.ipynb', ['import time\nprint("begun")\ntime.sleep(1000)', 'print("must not run")']);
  await lab.openNotebook(page, 'interrupt.ipynb');
  await lab.execute(page, 'notebook:run-all-cells');
  const cell = lab.cell(page, 0);
  await expect(cell.items.first()).toContainText('begun');
  await expect(cell.prompt).toHaveText('[*]:');
  await page.locator('[data-jp-item-name="interrupt"]').click();
  await expect(cell.summary).toContainText('interrupted');
  await expect(cell.node).toContainText('KeyboardInterrupt');
  await expect(cell.prompt).toHaveText(/^\[\d+\]:$/);
  await expect(lab.cell(page, 1).prompt).toHaveText('[ ]:');
  // And the ranks are there for the next cell.
  await lab.runCell(page, 1);
  await expect(lab.cell(page, 1).summary).toContainText('2 ranks \u00b7 ok');
});

test('what the server refuses is shown in the cell', async ({ page }) => {
  lab.writeNotebook('refused.ipynb', ['print(1)'], lab.onRanks('7'));
  await lab.openNotebook(page, 'refused.ipynb');
  await lab.runCell(page, 0);
  const { node, prompt } = lab.cell(page, 0);
  await expect(node).toContainText("There is no rank 7 ('7').");
  await expect(node).toContainText('This group has ranks 0 to 1.');
  await expect(prompt).toHaveText('[ ]:');
});

test('a notebook that is saved while a cell runs has all that the cell shows', async ({ page }) => {
  const code = 'import time\nfor step in range(1000): print("step", step); time.sleep(0.3)';
  lab.writeNotebook('running.ipynb', [code], lab.onRanks('0'));
  await lab.openNotebook(page, 'running.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  const saved = (): string => JSON.stringify(lab.readNotebook('running.ipynb').cells[0].outputs);
  for (const step of [3, 9, 12]) {
    await expect(cell.items).toContainText(`step ${step}`);
    await lab.saveNotebook(page);
    expect(saved()).toContain(`step ${step}\\n`);
  }
  await lab.execute(page, 'notebook:interrupt-kernel');
  await expect(cell.summary).toContainText('interrupted');
});

test('many lines do not freeze the page', async ({ page }) => {
  lab.writeNotebook('flood.ipynb', ['for i in range(20000):\n    print("line", i, "of rank", rank)']);
  await lab.openNotebook(page, 'flood.ipynb');
  const cell = lab.cell(page, 0);
  await cell.editor.click();
  const seconds = await computed(page, async () => {
    await page.keyboard.press('Control+Enter');
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(cell.node.getByText(/more lines? .*in the log of rank/)).toHaveCount(1);
    await cell.tab('Rank 1, ok').click();
    await expect(cell.items.last()).toContainText('line 19999 of rank 1');
  });
  // What freezes the page computes for long; this is under 3 s.
  expect(seconds).toBeLessThan(20);
});

test.describe(() => {
  test.use({ ownPage: true });

  test('a cell whose answer is lost is asked for again, and runs once', async ({ page }) => {
    const asked: (string | undefined)[] = [];
    await page.routeWebSocket(/\/jupyter-dist\//, socket => {
      const server = socket.connectToServer();
      socket.onMessage(data => {
        const message = JSON.parse(data as string) as { type: string; key: string };
        if (message.type === 'submit') {
          asked.push(message.key);
        }
        server.send(data);
      });
      server.onMessage(data => {
        const message = JSON.parse(data as string) as { type: string };
        if (message.type === 'submitted') {
          void socket.close({ code: 1001 }); // the server has it, and runs it
        } else {
          socket.send(data);
        }
      });
    });
    await page.route(/\/executions(\?|$)/, async route => {
      if (route.request().method() !== 'POST') {
        return route.continue();
      }
      asked.push(route.request().headers()['idempotency-key']);
      if (asked.length > 2) {
        return route.continue();
      }
      await route.fetch();
      await route.abort('connectionreset');
    });
    lab.writeNotebook('lost-answer.ipynb', ['times = globals().get("times", 0) + 1\nprint("times", times)']);
    await lab.openNotebook(page, 'lost-answer.ipynb');
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(cell.items).toHaveText([/times 1$/m]);
    expect(asked).toEqual([expect.stringMatching(/./), asked[0], asked[0]]);
  });

  test('a cell whose answer stays lost says so, and is shown when the page is connected again', async ({ page }) => {
    let isLost = false;
    const sockets: WebSocketRoute[] = [];
    await page.routeWebSocket(/\/jupyter-dist\//, socket => {
      if (isLost) {
        return void socket.close({ code: 1001 });
      }
      sockets.push(socket);
      const server = socket.connectToServer();
      server.onMessage(data => {
        if ((JSON.parse(data as string) as { type: string }).type === 'submitted') {
          isLost = true; // the server has it, and runs it
          sockets.splice(0).forEach(each => void each.close({ code: 1001 }));
        } else {
          socket.send(data);
        }
      });
    });
    await page.route(/\/jupyter-dist\/api\/groups/, route =>
      isLost ? route.fulfill({ status: 502, body: 'Bad Gateway' }) : route.continue()
    );
    lab.writeNotebook('no-answer.ipynb', ['rounds = globals().get("rounds", 0) + 1\nprint("rounds", rounds)']);
    await lab.openNotebook(page, 'no-answer.ipynb');
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    await expect(cell.node).toContainText('is shown here as soon as the server says so');
    await expect(cell.node).toContainText('502');

    isLost = false;
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(cell.items).toHaveText([/rounds 1$/m]);
    await expect(cell.node).not.toContainText('502');
  });

  test('a cell that runs says when nobody can tell how it does', async ({ page }) => {
    let isCut = false;
    const sockets: WebSocketRoute[] = [];
    await page.routeWebSocket(/\/jupyter-dist\//, socket => {
      if (isCut) {
        void socket.close({ code: 1001 });
      } else {
        socket.connectToServer();
        sockets.push(socket);
      }
    });
    lab.writeNotebook(
      'cut.ipynb',
      ['import time\nfor i in range(80): print("line", i); time.sleep(0.1)'],
      lab.onRanks()
    );
    await lab.openNotebook(page, 'cut.ipynb');
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    await expect(cell.summary).toContainText('running');
    await expect(cell.node).toContainText('line 1');
    isCut = true;
    await Promise.all(sockets.map(socket => socket.close({ code: 1001 })));
    await expect(cell.summary).toContainText('running \u00b7');
    await expect(cell.summary).toContainText('not connected');
    const tabs = cell.node.locator('.jpd-OutputTabs');
    expect(await tabs.evaluate(node => node.scrollWidth <= node.clientWidth)).toBe(true);
    isCut = false;
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(cell.summary).not.toContainText('not connected');
    await expect(cell.node).toContainText('line 79');
  });

  test('a connection that is dead and was not closed is noticed, and the cell is shown by another', async ({
    page
  }) => {
    const sockets: WebSocketRoute[] = [];
    const dead = new Set<WebSocketRoute>();
    await page.routeWebSocket(/\/jupyter-dist\//, socket => {
      const server = socket.connectToServer();
      sockets.push(socket);
      socket.onMessage(message => (dead.has(socket) ? undefined : server.send(message)));
      server.onMessage(message => (dead.has(socket) ? undefined : socket.send(message)));
    });
    lab.writeNotebook('dead-line.ipynb', ['print("over", 40 + 2)'], lab.onRanks());
    await lab.openNotebook(page, 'dead-line.ipynb');
    sockets.splice(0).forEach(socket => dead.add(socket));
    const cell = lab.cell(page, 0);
    await lab.runCell(page, cell);
    await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
    await expect(cell.items).toHaveText(/over 42/);
    expect(sockets).toHaveLength(1);
  });
});
