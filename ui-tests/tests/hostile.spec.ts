/** A notebook that somebody sent: nothing in it runs before it is trusted, and no text in it is ever more than text. */
import { expect, Page, test } from '@playwright/test';
import { execFileSync } from 'child_process';
import * as fs from 'fs';
import * as lab from './lab';

const MIME = 'application/vnd.jupyter-dist.ranks+json';

/** Says who ran. */
const run = (who: string): string =>
  `(window.__xss = window.__xss || []).push('${who}')`;
/** An element that runs its script as soon as it is an element. */
const img = (who: string): string => `<img src="x:" onerror="${run(who)}">`;

const HTML = [
  '<div class="sent">shown',
  `<script>${run('html script')}</script>`,
  img('html img'),
  `<svg onload="${run('html svg')}"></svg>`,
  `<a href="javascript:${run('html link')}">html link</a>`,
  `<iframe srcdoc="<script>parent.${run('iframe').slice(1)}</script>"></iframe>`,
  // Names that would stand in for JupyterLab's own.
  '<form id="jupyterapp" name="jupyterapp"></form>',
  '<a id="jupyter-config-data">{"baseUrl": "https://example.org/"}</a>',
  '<img name="getElementById">',
  '</div>'
].join('');
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="${run('svg')}"><script>${run('svg script')}</script></svg>`;

const rich = (data: object): object => ({
  output_type: 'display_data',
  data,
  metadata: {}
});
const text = (words: string): object => ({
  output_type: 'stream',
  name: 'stdout',
  text: words
});

/** What ranks never said. `depth`: such a bundle may hold another one. */
function bundle(depth = 1): object {
  const outputs = [
    rich({ 'text/html': HTML, 'text/plain': 'plain' }),
    rich({ 'image/svg+xml': SVG, 'text/plain': 'a drawing' }),
    rich({ 'text/markdown': `[md link](javascript:${run('markdown')}) ${img('markdown img')}` }),
    rich({ 'application/javascript': run('javascript'), 'text/plain': 'a script' }),
    rich({ 'text/plain': img('text/plain') }),
    text(`${img('stream')} javascript:${run('stream link')}\n`),
    {
      output_type: 'error',
      ename: img('ename'),
      evalue: img('evalue'),
      traceback: [img('traceback'), `\x1b[31m${img('coloured')}\x1b[0m`]
    },
    ...(depth ? [rich({ [MIME]: bundle(depth - 1), 'text/plain': 'nested' })] : [])
  ];
  return {
    version: 1,
    group: { id: img('group id'), name: img('group name'), world_size: 2 },
    execution_id: `"><script>${run('execution')}</script>`,
    ranks: '0-1',
    state: 'error',
    error: { code: 'x', message: img('message'), hint: img('hint') },
    statuses: [
      { ranks: '0', status: img('status'), seconds: 1 },
      { ranks: img('status ranks'), status: 'ok', seconds: img('seconds') }
    ],
    started_at: 1763689341,
    ended_at: 1763689343,
    items: outputs.flatMap(output => [
      { ranks: '0-1', output },
      { ranks: img('ranks'), output }
    ])
  };
}

function writeHostile(name: string): void {
  const data = { [MIME]: bundle(), 'text/plain': `[rank 0]\n${img('fallback')}` };
  lab.writeNotebook(
    name,
    [
      {
        source: '"never run here"',
        // Marks in the file itself must not help.
        metadata: { trusted: true, collapsed: false },
        outputs: [{ ...rich(data), metadata: { trusted: true } }]
      }
    ],
    { trusted: true }
  );
}

const ran = (page: Page): Promise<string[]> =>
  page.evaluate(() => (window as unknown as { __xss?: string[] }).__xss ?? []);

/** Look at every tab, as a reader would. */
async function readAll(page: Page): Promise<void> {
  const cell = lab.cell(page, 0);
  await expect(cell.items.first()).toBeVisible();
  for (const tab of await cell.node.getByRole('tablist').first().getByRole('tab').all()) {
    await tab.click();
  }
  await page.waitForTimeout(300);
}

test('nothing of a notebook that is not trusted runs', async ({ page }) => {
  writeHostile('hostile.ipynb');
  await lab.openNotebook(page, 'hostile.ipynb');
  await readAll(page);
  const { node, summary } = lab.cell(page, 0);
  await expect(node.locator('.sent').first()).toContainText('shown');
  await expect(summary.first()).toContainText(img('group name'));
  const links = await node.locator('a').evaluateAll(all => all.map(link => (link as HTMLAnchorElement).href));
  expect(links.filter(href => href.startsWith('javascript:'))).toEqual([]);
  expect(await ran(page)).toEqual([]);
  // JupyterLab finds its own things under their names.
  const names = await page.evaluate(() => [
    document.getElementById('jupyter-config-data')?.tagName,
    typeof document.getElementById,
    typeof (window as unknown as { jupyterapp: { commands: object } }).jupyterapp.commands
  ]);
  expect(names).toEqual(['SCRIPT', 'function', 'object']);
  await expect(node.locator('[id="jupyterapp"], [id="jupyter-config-data"], [name="jupyterapp"]')).toHaveCount(0);
});

test('a trusted notebook shows its HTML as JupyterLab does, and its text as text', async ({ page }) => {
  writeHostile('trusted.ipynb');
  execFileSync('jupyter', ['trust', lab.rootPath('trusted.ipynb')]);
  await lab.openNotebook(page, 'trusted.ipynb');
  await readAll(page);
  const { node } = lab.cell(page, 0);
  await expect(node.locator('.jp-RenderedHTML .sent').first()).toContainText('shown');
  const who = new Set(await ran(page));
  expect(who).toContain('html img');
  const markup = /^(html|svg|markdown|javascript|iframe)/;
  expect([...who].filter(name => !markup.test(name))).toEqual([]);
});

test('nbconvert shows the text, and runs nothing', async ({ page }) => {
  writeHostile('convert.ipynb');
  execFileSync('jupyter', ['nbconvert', '--to', 'html', lab.rootPath('convert.ipynb')], { stdio: 'pipe' });
  const html = fs.readFileSync(lab.rootPath('convert.html'), 'utf8');
  // Its own libraries come from elsewhere.
  await page.route('**', route => route.abort());
  await page.setContent(html);
  await expect(page.locator('.jp-OutputArea-output')).toHaveText(`[rank 0]\n${img('fallback')}`);
  await expect(page.locator('.sent')).toHaveCount(0);
  expect(html).not.toContain(run('html script'));
  expect(await ran(page)).toEqual([]);
});
