// The renderer for VS Code, as it is built for a release, in a page that has nothing else, as the webview of VS Code's notebooks.
import { execFileSync } from 'child_process';
import { mkdtempSync, readFileSync } from 'fs';
import { tmpdir } from 'os';
import { join, resolve } from 'path';
import { expect, Locator, Page, test } from '@playwright/test';

const REPOSITORY = resolve(__dirname, '../..');

const stream = (ranks: string, text: string): object => ({
  ranks,
  output: { output_type: 'stream', name: 'stdout', text }
});
const BUNDLE = {
  version: 1,
  group: { id: 'g-1', name: 'train', world_size: 2 },
  execution_id: 'e-1',
  ranks: '0-1',
  state: 'error',
  statuses: [
    { ranks: '0', status: 'ok', seconds: 0.1 },
    { ranks: '1', status: 'error', seconds: 0.1 }
  ],
  started_at: 1,
  ended_at: 2,
  items: [
    stream('0-1', 'hello from all\n'),
    stream('0', 'I am 0\n'),
    stream('1', 'I am 1\n'),
    { ranks: '0-1', part: 1 }, // a figure, which VS Code shows below
    {
      ranks: '0',
      output: {
        output_type: 'display_data',
        data: { 'text/html': '<b>table</b><script>window.ran = 1</script>' },
        metadata: {}
      }
    },
    { ranks: '1', output: { output_type: 'error', ename: 'ValueError', evalue: 'bad', traceback: ['ValueError: bad'] } }
  ]
};

type Render = (bundle: object) => Promise<void>;

/** A page with the renderer: what shows a bundle there, and the errors of the page. */
async function openRenderer(page: Page): Promise<{ render: Render; errors: Error[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'jpd-vscode-'));
  execFileSync('node', [join(REPOSITORY, 'labextension/vscode/build.mjs'), folder]);
  const source = readFileSync(join(folder, 'renderer.js'), 'utf8');
  const errors: Error[] = [];
  page.on('pageerror', error => errors.push(error));
  await page.setContent('<div id="output"></div>');
  const render: Render = bundle =>
    page.evaluate(
      async ([code, data]) => {
        const known = window as unknown as {
          renderer?: { renderOutputItem(item: object, node: Element): Promise<void> };
        };
        if (!known.renderer) {
          const url = URL.createObjectURL(new Blob([code as string], { type: 'text/javascript' }));
          known.renderer = (await import(url)).activate();
        }
        const item = { id: '1', mime: 'application/vnd.jupyter-dist.ranks+json', metadata: {}, json: () => data };
        await known.renderer!.renderOutputItem(item, document.querySelector('#output')!);
      },
      [source, bundle] as const
    );
  return { render, errors };
}

test('the renderer for VS Code shows a saved output folded and by rank, and runs nothing in it', async ({ page }) => {
  const { render, errors } = await openRenderer(page);
  await render(BUNDLE);
  const output = page.locator('.jpd-Ranks');
  const seen = (text: string): Locator => output.locator('pre', { hasText: text }).filter({ visible: true });
  await expect(output).toContainText('hello from all');
  await expect(output).toContainText('ValueError: bad');
  await expect(output.locator('b', { hasText: 'table' })).toBeVisible();
  await output.getByRole('tab', { name: 'Rank 1' }).click();
  await expect(seen('I am 1')).toHaveCount(1);
  await expect(seen('I am 0')).toHaveCount(0);
  // A cell that runs sends its output again and again: the tab stays.
  await render({ ...BUNDLE, items: [...BUNDLE.items, stream('1', 'one more line\n')] });
  await expect(seen('one more line')).toHaveCount(1);
  await expect(seen('I am 0')).toHaveCount(0);
  await render({ version: 99 });
  await expect(page.locator('#output')).toContainText('This rank output cannot be read.');
  expect(await page.evaluate(() => (window as unknown as { ran?: number }).ran)).toBeUndefined();
  expect(errors).toEqual([]);
});

test('the renderer for VS Code shows no header while ranks agree, and the colors of its theme', async ({ page }) => {
  const { render, errors } = await openRenderer(page);
  const statuses = [{ ranks: '0-1', status: 'ok', seconds: 0.1 }];
  const agreeing = { ...BUNDLE, state: 'ok', statuses, items: [stream('0-1', 'hello from all\n')] };
  await render(agreeing);
  const output = page.locator('.jpd-Ranks');
  const header = output.locator('.jpd-Ranks-header');
  await page.mouse.move(600, 800);
  await expect(header).toHaveCSS('opacity', '0');
  await expect(output.getByText('ranks 0-1', { exact: true })).toBeHidden();
  await output.hover();
  await expect(header).toHaveCSS('opacity', '1');
  await expect(header).toContainText('2 ranks \u00b7 ok');

  await render({ ...agreeing, items: [] });
  await page.mouse.move(600, 800);
  expect((await output.boundingBox())!.height).toBe(0);
  await output.getByRole('tab', { name: 'Folded' }).focus();
  await expect(header).toBeInViewport();

  await render(BUNDLE);
  await expect(header).toHaveCSS('opacity', '1');
  const hue = (): Promise<string> =>
    output.getByRole('tab', { name: 'Rank 1' }).evaluate(tab => getComputedStyle(tab).getPropertyValue('--jpd-hue'));
  const light = await hue();
  await page.locator('body').evaluate(body => body.classList.add('vscode-dark'));
  expect(await hue()).not.toBe(light);
  expect(errors).toEqual([]);
});

test('the renderer for VS Code says why a cell does not end while its kernel says so', async ({ page }) => {
  const { render, errors } = await openRenderer(page);
  const running = { ...BUNDLE, state: 'running', statuses: [], items: [], ended_at: null };
  const verdict = {
    kind: 'cannot_end',
    reason: 'missing',
    message: 'Rank 0 waits in barrier.',
    since: 1.5,
    waiting: [
      { ranks: '0', state: 'waits', place: 'line 2 of cell [4]: <b>dist</b>.barrier()', call: 'barrier, number 1' }
    ],
    needed: [{ ranks: '1', state: 'idle', place: 'since cell [4]', call: null }],
    could_join: '1'
  };
  await render({ ...running, verdict });
  const card = page.getByRole('alert');
  await expect(card).toContainText('Cannot end: rank 0 called what rank 1 did not call');
  await expect(card.locator('li')).toHaveText([
    'rank 0 waits in barrier, number 1 \u00b7 line 2 of cell [4]: <b>dist</b>.barrier()',
    'rank 1 idle \u00b7 since cell [4]'
  ]);
  // There is no server that could do what the buttons of the page do.
  await expect(page.locator('.jpd-Verdict').getByRole('button')).toHaveCount(0);
  await render({ ...running, state: 'interrupted', ended_at: 7.5 });
  await expect(card).toBeHidden();
  await expect(page.locator('.jpd-Verdict-past')).toHaveText('For 6.0 s, rank 0 waited for rank 1.');
  expect(errors).toEqual([]);
});
