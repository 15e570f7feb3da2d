/** A notebook from somewhere else: nothing in it runs before it is trusted, and no text in it is ever more than text. */
import { APIRequestContext, Page } from '@playwright/test';
import { execFileSync, spawn } from 'child_process';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command } from './ranks';

test.use({ ownPage: true });

const MIME = 'application/vnd.jupyter-dist.ranks+json';
const PART = 'application/vnd.jupyter-dist.part+json';

/** Says who ran. */
const run = (who: string): string => `(window.__xss = window.__xss || []).push('${who}')`;
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
    group: { id: 'g-00000000', name: img('group name'), world_size: 2 },
    execution_id: 'e-000000000000',
    ranks: '0-1',
    state: 'error',
    error: { code: 'x', message: img('message'), hint: img('hint') },
    statuses: [{ ranks: '0-1', status: 'error', seconds: 1 }],
    started_at: 1763689341,
    ended_at: 1763689343,
    items: outputs.map(output => ({ ranks: '0-1', output }))
  };
}

/** The same as a kernel saves it: the bundle names outputs after it, whose marks say what they were. */
function parted(): object[] {
  const of = 'e-000000000000';
  const { items, ...rest } = bundle() as { items: { output: { data?: object; output_type: string } }[] };
  const parts = items.map(({ output }, i) => {
    const error =
      output.output_type === 'error' ? { error: { ename: img('part ename'), evalue: img('part evalue') } } : {};
    return rich({
      'text/plain': `\x1b[31m${img('part traceback')}\x1b[0m`,
      ...output.data,
      [PART]: { of, part: i + 1, ...error }
    });
  });
  const named = { ...rest, items: parts.map((_, i) => ({ ranks: '0-1', part: i + 1 })) };
  return [rich({ [MIME]: named, 'text/plain': img('fallback'), 'text/html': HTML }), ...parts];
}

function writeHostile(name: string, more: object[] = []): void {
  const data = { [MIME]: bundle(), 'text/plain': `[rank 0]\n${img('fallback')}` };
  lab.writeNotebook(
    name,
    [
      {
        source: '"never run here"',
        // Marks in the file itself must not help.
        metadata: { trusted: true, collapsed: false },
        outputs: [{ ...rich(data), metadata: { trusted: true } }]
      },
      ...more
    ],
    { trusted: true }
  );
}

const ran = (page: Page): Promise<string[]> =>
  page.evaluate(() => (window as unknown as { __xss?: string[] }).__xss ?? []);

/** Look at every tab, as a reader would. */
async function readAll(page: Page, index = 0): Promise<void> {
  const cell = lab.cell(page, index);
  await expect(cell.items.first()).toBeVisible();
  for (const tab of await cell.node.getByRole('tablist').first().getByRole('tab').all()) {
    await tab.click();
  }
  await page.waitForTimeout(300);
}

const SETTINGS = '/lab/api/settings/@jupyterlab/translation-extension:plugin';

/** Have pages speak a language, and this one load again; returns what our English texts are in it. */
async function speak(request: APIRequestContext, locale: string, page?: Page): Promise<(english: string) => string> {
  await page?.goto('about:blank');
  await request.put(SETTINGS, { data: { raw: JSON.stringify({ locale }) } });
  const path = `../jupyter_dist/locale/${locale}/LC_MESSAGES/jupyter_dist.json`;
  const catalogue = locale === 'default' ? {} : JSON.parse(fs.readFileSync(path, 'utf8'));
  return english => catalogue[english]?.[0] ?? english;
}

for (const [language, locale] of Object.entries({ English: 'default', Japanese: 'ja_JP' })) {
  test.describe(() => {
    test.use({ ownPage: locale !== 'default' }); // else it leaves nothing behind

    test(`nothing of a notebook that is not trusted runs in ${language}`, async ({ page, request }) => {
      await speak(request, locale);
      try {
        writeHostile('hostile.ipynb', [{ source: '"never run either"', outputs: parted() }]);
        await lab.openNotebook(page, 'hostile.ipynb');
        await readAll(page);
        await readAll(page, 1);
        await expect(lab.cell(page, 1).ranks.getByText(img('part traceback')).first()).toBeAttached();
        await expect(lab.cell(page, 1).node.locator('.jp-Cell-outputArea > .jp-OutputArea-child:visible')).toHaveCount(
          1
        );
        const { node, summary } = lab.cell(page, 0);
        await expect(node.locator('.sent').first()).toContainText('shown');
        await expect(summary.first()).toContainText(img('group name'));
        const links = await page
          .locator('.jp-Notebook a')
          .evaluateAll(all => all.map(link => (link as HTMLAnchorElement).href));
        expect(links.filter(href => href.startsWith('javascript:'))).toEqual([]);
        expect(await ran(page)).toEqual([]);
        // JupyterLab finds its own things under their names.
        const names = await page.evaluate(() => [
          document.getElementById('jupyter-config-data')?.tagName,
          typeof document.getElementById,
          typeof (window as unknown as { jupyterapp: { commands: object } }).jupyterapp.commands
        ]);
        expect(names).toEqual(['SCRIPT', 'function', 'object']);
        await expect(
          page.locator('.jp-Notebook').locator('[id="jupyterapp"], [id="jupyter-config-data"], [name="jupyterapp"]')
        ).toHaveCount(0);
      } finally {
        await speak(request, 'default');
      }
    });
  });
}

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

/** A cell whose output never was one of ranks, though it says so. */
function forged(data: object, words: string): object {
  return {
    source: `"${words}"`,
    outputs: [rich({ [MIME]: { ...bundle(0), ...data }, 'text/plain': `text of ${words}` })]
  };
}

test('no id of a file reaches the server, and Interrupt ends nothing of others', async ({ page, request }) => {
  // Every cell is looked at, and scrolling to each takes its time.
  await lab.startGroup(request);
  const { id } = await (await request.get(`/jupyter-dist/api/groups/${lab.GROUP}`)).json();
  const open = { state: 'running', error: undefined, statuses: [] };
  const group = { id, name: lab.GROUP, world_size: 2 };
  const bad: [string, object][] = [
    ['a long id', { ...open, group, execution_id: `e-${'0'.repeat(70000)}` }],
    ['a way up', { ...open, group: { ...group, id: lab.GROUP }, execution_id: '..', state: 'queued' }],
    ['a way up of an id', { ...open, group, execution_id: '..' }],
    ['a float', { ranks: '1e300' }],
    ['no end', { ranks: 'Infinity' }],
    ['no exact number', { ranks: '9007199254740992' }],
    ['ranks over and over', { ranks: Array(2000).fill('0-65535').join() }],
    ['an item without end', { items: [{ ranks: 'Infinity', output: text('said') }] }],
    ['markup for ids', { group: { ...group, id: img('group id') }, execution_id: `"><script>${run('id')}</script>` }],
    ['markup for a state', { statuses: [{ ranks: img('ranks'), status: img('status'), seconds: img('seconds') }] }]
  ];
  const unknown = Array.from({ length: 20 }, (_, i) =>
    forged({ ...open, group, execution_id: `e-${i}` }, `unknown ${i}`)
  );
  lab.writeNotebook('ids.ipynb', [...bad.map(([words, data]) => forged(data, words)), ...unknown], lab.onRanks());
  const asked: string[] = [];
  page.on('request', sent => {
    if (sent.method() !== 'GET' && sent.url().includes('/jupyter-dist/')) {
      asked.push(`${sent.method()} ${sent.url()}`);
    }
  });
  let sockets = 0;
  const frames: string[] = [];
  page.on('websocket', socket => {
    if (socket.url().includes('/jupyter-dist/')) {
      sockets += 1;
      socket.on('framesent', ({ payload }) => frames.push(String(payload)));
    }
  });
  try {
    await lab.openNotebook(page, 'ids.ipynb');
    for (const [index, [words]] of bad.entries()) {
      const cell = lab.cell(page, index);
      await cell.node.scrollIntoViewIfNeeded();
      await expect(cell.node.locator('.jpd-Ranks')).toContainText(`text of ${words}`);
      await expect(cell.prompt).toHaveText('[ ]:');
    }
    // What no server knows is not waited for.
    const last = lab.cell(page, bad.length);
    await expect(last.node).toContainText('The server no longer has this execution');
    await expect(last.prompt).toHaveText('[ ]:');
    await page.locator('[data-jp-item-name="interrupt"]').click();
    // The page works as if that notebook were not there: its connection was never cut.
    lab.writeNotebook('fine.ipynb', ['print("fine")'], lab.onRanks());
    await page.evaluate(() => {
      const { jupyterapp } = window as unknown as {
        jupyterapp: { commands: { execute(id: string, args: object): Promise<unknown> } };
      };
      void jupyterapp.commands.execute('docmanager:open', { path: 'fine.ipynb', kernel: { name: null } });
    });
    const fine = page.locator(lab.SHOWN_NOTEBOOK).filter({ hasText: 'print("fine")' });
    await expect(fine).toBeVisible();
    await lab.sessionReady(page); // and no dialog asks for a kernel
    await fine.locator('.jp-InputArea-editor').click();
    await page.keyboard.press('Control+Enter');
    await expect(fine.locator('.jpd-Ranks-summary')).toContainText('2 ranks \u00b7 ok');
    expect(asked.filter(url => url.startsWith('DELETE'))).toEqual([]);
    expect(sockets).toBe(1);
    expect(frames.filter(frame => /"e-\d{1,3}"|e-0000|\.\./.test(frame))).toEqual([]);
    expect((await (await request.get(`/jupyter-dist/api/groups/${lab.GROUP}`)).json()).state).toBe('ready');
    expect(await ran(page)).toEqual([]);
  } finally {
    await lab.shutdownGroup(request);
  }
});

/** What a hostile rank names: its class, its file, its line of code and its error. */
const NAMES = `import os, time
def fails(self, protocol): raise ValueError(${JSON.stringify(img('undo reason'))})
thing = type(${JSON.stringify(img('undo type'))}, (), {"__reduce_ex__": fails})()
places = (place for place in [1])
places.__qualname__ = ${JSON.stringify(img('undo generator'))}
exec(compile(${JSON.stringify(`import time\ndef prepare():\n    time.sleep(0.06 * rank)  # ${img('slow line')}\n`)}, ${JSON.stringify(img('slow file'))}, "exec"))
prepare.__code__ = prepare.__code__.replace(co_name=${JSON.stringify(img('slow function'))})
go = torch.ones(1)`;

const markup = (page: Page): Promise<string[]> =>
  page.locator('img[src="x:"]').evaluateAll(found => found.map(image => image.outerHTML));

for (const [language, locale] of Object.entries({ English: 'default', Japanese: 'ja_JP' })) {
  test(`what ranks, cells and notebooks are called is text in ${language}: undo, slow line, timeline`, async ({
    page,
    request
  }) => {
    const notebook = `${img('notebook')}.ipynb`;
    const stop = lab.newPath('hostile-stop');
    const loop = `# ${img('code')}
while go.item():
    prepare()
    dist.all_reduce(torch.ones(1))
    go.fill_(0 if rank == 0 and os.path.exists(${JSON.stringify(stop)}) else 1)
    dist.broadcast(go, 0)`;
    await lab.startGroup(request);
    const say = await speak(request, locale);
    try {
      lab.writeNotebook(notebook, [NAMES, `# ${img('undone code')}\nthing.x = 1; next(places)`, loop], lab.onRanks());
      await lab.openNotebook(page, notebook);
      await lab.runCell(page, 0);
      await expect(lab.cell(page, 0).summary).toContainText(say('ok'));
      await command(page, 'jupyter-dist:keep-undo');
      const undone = await lab.runCell(page, 1);
      await undone.node.getByRole('button', { name: say('Undo\u2026') }).click();
      const dialog = page.getByRole('dialog').filter({ hasText: say('Undo') });
      await expect(dialog.getByRole('list', { name: say('Not undone'), exact: true })).toContainText('places');
      await expect(dialog).toContainText(img('undone code'));
      await page.waitForTimeout(300); // an image would have failed to load by then
      expect([await ran(page), await markup(page)]).toEqual([[], []]);
      await dialog.getByRole('button', { name: say('Undo'), exact: true }).click();
      await expect(undone.node.getByRole('button', { name: say('Redo') })).toBeVisible();

      const { node } = await lab.runCell(page, 2);
      const slow = node.getByRole('group', { name: say('Why the cell is slow') });
      await expect(slow).toContainText(img('slow file'));
      await slow.getByRole('button', { name: say('Details') }).click();
      await expect(node.getByRole('region', { name: say('Where the time goes') })).toContainText(img('slow file'));
      await command(page, 'jupyter-dist:open-timeline', { group: lab.GROUP });
      const timeline = page.getByRole('tabpanel', { name: say('Timeline: %1').replace('%1', lab.GROUP) });
      await expect(timeline).toContainText('onerror');
      await page.waitForTimeout(300);
      expect([await ran(page), await markup(page)]).toEqual([[], []]);
    } finally {
      fs.writeFileSync(stop, '');
      await speak(request, 'default');
      await lab.shutdownGroup(request);
    }
  });
}

/** A host name of the longest length that Linux takes, with markup and the placeholders of our catalogues. */
const HOST = `<img src="x:" onerror="__xss=['host']">%1%2 %1$s %(host)s`.slice(0, 64);
const NAMED = 'import os, socket, sys; socket.sethostname(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])';

test('a machine may be called anything: its name is text in German and Japanese sentences, too', async ({
  page,
  request
}) => {
  const shape = { launcher: 'external', num_nodes: 1, ranks_per_node: 2, accelerator: 'cpu' };
  const api = '/jupyter-dist/api/groups';
  let group = await (await request.post(api, { data: { name: lab.GROUP, ...shape } })).json();
  await expect(async () => {
    group = await (await request.get(`${api}/${group.id}`)).json();
    expect(group.join).toBeTruthy();
  }).toPass();
  const namespaces = ['--user', '--map-root-user', '--uts'];
  const [python, ...join] = group.join.split(' ');
  const node = spawn('unshare', [...namespaces, python, '-c', NAMED, HOST, python, ...join], { stdio: 'ignore' });
  try {
    await expect(async () => {
      group = await (await request.get(`${api}/${group.id}?wait=10&not_state=starting`)).json();
      expect(group.nodes[0].host).toBe(HOST);
      expect(group.state).toBe('ready');
    }).toPass({ timeout: 120000 });
    for (const locale of ['de_DE', 'ja_JP']) {
      await speak(request, locale, page);
      lab.writeNotebook('host.ipynb', [`print(${JSON.stringify(`${HOST}\u202e`)} * (rank + 1))`], lab.onRanks());
      await lab.openNotebook(page, 'host.ipynb');
      await lab.runCell(page, 0);
      await expect(lab.cell(page, 0).items.first()).toContainText(HOST);
      await command(page, 'jupyter-dist:show-sidebar');
      await expect(page.locator('.jpd-Group').filter({ hasText: HOST })).toBeVisible();
      await command(page, 'jupyter-dist:open-timeline', { group: lab.GROUP });
      await expect(page.locator('.jpd-Timeline')).toBeVisible();
      await lab.picker(page).click();
      await page.keyboard.press('Escape');
      await page.waitForTimeout(300);
      expect([await ran(page), await markup(page)]).toEqual([[], []]);
    }
  } finally {
    await speak(request, 'default');
    await lab.shutdownGroup(request);
    node.kill();
  }
});
