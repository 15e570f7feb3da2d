import { expect, test } from './fixtures';
import * as lab from './lab';
import { openLab } from './ranks';

// No group runs here: what is shown is in the file.

interface ILab {
  jupyterapp: {
    shell: {
      currentWidget: {
        content: {
          scrollToItem(index: number): Promise<void>;
          widgets: { isAttached: boolean; outputArea: { node: HTMLElement } }[];
        };
      };
    };
  };
}

interface IIdle {
  jpdRelease(): void;
}

function bundle(more: object = {}): object {
  return {
    version: 1,
    group: { id: 'g-00000000', name: 'gone', world_size: 2 },
    execution_id: 'e-000000000000',
    ranks: '0-1',
    state: 'ok',
    statuses: [{ ranks: '0-1', status: 'ok', seconds: 1.5 }],
    started_at: 1763689341,
    ended_at: 1763689343,
    items: [
      {
        ranks: '0-1',
        output: { output_type: 'stream', name: 'stdout', text: 'kept\n' }
      }
    ],
    ...more
  };
}

function cellWith(data: object, metadata: object = {}): object {
  const ranks = { 'application/vnd.jupyter-dist.ranks+json': data };
  return {
    source: 'print("kept")',
    execution_count: 3,
    metadata,
    outputs: [
      {
        output_type: 'display_data',
        data: { ...ranks, 'text/plain': 'kept' },
        metadata: {}
      }
    ]
  };
}

test('a saved notebook shows its ranks without their group', async ({ page }) => {
  lab.writeNotebook('gone.ipynb', [cellWith(bundle())], {});
  await lab.openNotebook(page, 'gone.ipynb');
  const cell = lab.cell(page, 0);
  await expect(cell.summary).toHaveText('gone \u00b7 2 ranks \u00b7 ok \u00b7 2.0 s');
  await expect(cell.items).toContainText('kept');
  await cell.tab('Rank 1, ok 1.5 s').click();
  await expect(cell.items).toContainText('kept');
  await expect(cell.prompt).toHaveText('[3]:');
});

test('outputs of cells that are not seen yet are not drawn', async ({ page }) => {
  const cells = Array.from({ length: 80 }, () => cellWith(bundle()));
  lab.writeNotebook('long.ipynb', cells, {});
  await openLab(page);
  // JupyterLab draws the cells out of sight when it is idle: not before this test has looked.
  await page.evaluate(() => {
    const window_ = window as unknown as IIdle;
    const whenIdle = window.requestIdleCallback;
    const held: IdleRequestCallback[] = [];
    window.requestIdleCallback = callback => held.push(callback);
    window_.jpdRelease = () => {
      window.requestIdleCallback = whenIdle;
      held.forEach(callback => whenIdle(callback));
    };
  });
  await lab.openNotebook(page, 'long.ipynb');
  const unseen = await page.evaluate(() => {
    const { jupyterapp: app } = window as unknown as ILab;
    return app.shell.currentWidget.content.widgets
      .filter(cell => !cell.isAttached)
      .map(cell => cell.outputArea.node.textContent ?? '');
  });
  expect(unseen.length).toBeGreaterThan(0);
  expect(unseen.filter(text => text.includes('kept'))).toEqual([]);
  await page.evaluate(() => {
    const { jupyterapp: app, jpdRelease } = window as unknown as ILab & IIdle;
    jpdRelease();
    return app.shell.currentWidget.content.scrollToItem(79);
  });
  const last = lab.cell(page, 79);
  await expect(last.summary).toHaveText('gone \u00b7 2 ranks \u00b7 ok \u00b7 2.0 s');
  await expect(last.items).toContainText('kept');
});

test('what the server no longer knows is shown as lost', async ({ page }) => {
  const running = bundle({
    state: 'running',
    statuses: [{ ranks: '0-1', status: 'running', seconds: null }],
    ended_at: null
  });
  lab.writeNotebook('lost.ipynb', [cellWith(running)], {});
  await lab.openNotebook(page, 'lost.ipynb');
  const cell = lab.cell(page, 0);
  await expect(cell.node).toContainText('The server no longer has this execution');
  await expect(cell.items).toContainText('kept');
  await expect(cell.node.locator('.jpd-Ranks')).toHaveAttribute('data-state', 'lost');
});

test('the script of a notebook that is not trusted does not run', async ({ page }) => {
  const html = {
    'text/html':
      '<div class="evil">shown<img src="x" onerror="window.pwned = 1"><script>window.pwned = 2</script></div>'
  };
  const evil = bundle({
    items: [
      { ranks: '0', output: { output_type: 'display_data', data: html, metadata: {} } },
      {
        ranks: '1',
        output: {
          output_type: 'stream',
          name: 'stdout',
          text: '<img src=x onerror="window.pwned = 3">\n'
        }
      }
    ],
    group: {
      id: 'g-00000000',
      name: '<img src=x onerror="window.pwned = 4">',
      world_size: 2
    }
  });
  // A trusted mark in the file itself must not help.
  lab.writeNotebook('evil.ipynb', [cellWith(evil, { trusted: true })], {});
  await lab.openNotebook(page, 'evil.ipynb');
  const cell = lab.cell(page, 0);
  await expect(cell.node.locator('.evil')).toContainText('shown');
  await cell.tab('Rank 0, ok 1.5 s').click();
  await expect(cell.items.first()).toContainText('shown');
  await page.waitForTimeout(500);
  expect(await page.evaluate(() => 'pwned' in window)).toBe(false);
});

test('64 ranks have a sensible tab bar', async ({ page }) => {
  const items = [...Array(64).keys()].map(rank => ({
    ranks: String(rank),
    output: { output_type: 'stream', name: 'stdout', text: `I am ${rank}\n` }
  }));
  const wide = bundle({
    ranks: '0-63',
    group: { id: 'g-00000000', name: 'wide', world_size: 64 },
    statuses: [
      { ranks: '0-62', status: 'ok', seconds: 1 },
      { ranks: '63', status: 'error', seconds: 1 }
    ],
    state: 'error',
    items
  });
  lab.writeNotebook('wide.ipynb', [cellWith(wide)], {});
  await lab.openNotebook(page, 'wide.ipynb');
  const cell = lab.cell(page, 0);
  await expect(cell.summary).toContainText('63 ok, rank 63 error');
  await expect(cell.node.getByRole('tab')).toHaveCount(65);
  const box = await cell.node.getByRole('tablist').boundingBox();
  expect(box!.height).toBeLessThan(120);
  await cell.tab('Folded').focus();
  await page.keyboard.press('End');
  await expect(cell.items).toHaveText(/I am 63/);
});
