/** The page in other languages: no English of ours in the sidebar, a cell's output, the toolbar, the commands and the panels. */
import { APIRequestContext, Page } from '@playwright/test';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { openLab, run, shutdownAll, startGroup } from './ranks';

const SETTINGS = '/lab/api/settings/@jupyterlab/translation-extension:plugin';
const LOCALE = '../jupyter_dist/locale';

interface ILabWindow {
  jupyterapp: {
    commands: {
      execute(id: string, args?: object): Promise<unknown>;
      listCommands(): string[];
      label(id: string, args?: object): string;
      caption(id: string, args?: object): string;
    };
  };
}

test.use({ ownPage: true });

test.beforeAll(async ({ request }) => {
  await lab.startGroup(request);
  await speak(request, 'de_DE');
});

test.afterAll(async ({ request }) => {
  await speak(request, 'default');
  await lab.shutdownGroup(request);
});

async function speak(request: APIRequestContext, locale: string): Promise<void> {
  const put = await request.put(SETTINGS, { data: { raw: JSON.stringify({ locale }) } });
  expect(put.ok()).toBe(true);
}

/** Words that stand in English strings and in none of the language. */
function englishWords(locale = 'de_DE'): string[] {
  const template = fs.readFileSync(`${LOCALE}/jupyter_dist.pot`, 'utf8');
  const translated = JSON.parse(fs.readFileSync(`${LOCALE}/${locale}/LC_MESSAGES/jupyter_dist.json`, 'utf8'));
  delete translated[''];
  const known = new Set(words(Object.values(translated).flat().join(' ')));
  const strings = [...template.matchAll(/"(.*)"$/gm)].map(([, text]) => text.replaceAll('\\n', ' '));
  return [...new Set(words(strings.join(' ')))].filter(word => !known.has(word));
}

/** Words, but for names in code, such as num_ranks or DistApp.max_ranks, which are the same in every language. */
function words(text: string): string[] {
  return text.replace(/\w+[_.]\w[\w.]*/g, ' ').match(/\p{L}{2,}/gu) ?? [];
}

/** The texts, labels and titles of our elements that are shown, but for what ranks have written. */
async function shownTexts(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const ours = '[class*="jpd-"], [data-command^="jupyter-dist:"]';
    // What ranks or users wrote, the server's own words, and names of machines and folders.
    const others = '.jpd-RankItem pre, .cm-editor, .jpd-Group-facts, .jpd-Device-name';
    const found: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT);
    for (let node = walker.nextNode() as Element | null; node; node = walker.nextNode() as Element | null) {
      if (!node.closest(ours) || node.closest(others) || !node.checkVisibility()) {
        continue;
      }
      const texts = [...node.childNodes]
        .filter(child => child.nodeType === Node.TEXT_NODE)
        .map(child => child.nodeValue);
      const labels = ['aria-label', 'title', 'placeholder'].map(name => node!.getAttribute(name));
      found.push(...[...texts, ...labels].flatMap(text => text?.trim() || []));
    }
    return [...new Set(found)];
  });
}

/** The labels and captions of our commands, as menus, the palette and buttons have them. */
async function commandTexts(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const { commands } = (window as unknown as ILabWindow).jupyterapp;
    const ids = commands.listCommands().filter(id => id.startsWith('jupyter-dist:'));
    const args = [{}, { isPalette: true }];
    return ids.flatMap(id => args.flatMap(one => [commands.label(id, one), commands.caption(id, one)]));
  });
}

/** Paths of this machine, such as a checkout in a folder that is named by an English word. */
const PATHS = /\S*[/\\]\S*/g;

/** There are German texts of ours, and none with an English word. */
async function expectGerman(page: Page, ...some: string[]): Promise<void> {
  for (const text of some) {
    await expect.poll(async () => (await shownTexts(page)).filter(shown => shown.includes(text))).not.toEqual([]);
  }
  expect(englishOf([...(await shownTexts(page)), ...(await commandTexts(page))], 'de_DE')).toEqual([]);
}

/** The texts with an English word, but for code. */
function englishOf(texts: readonly string[], locale: string, code: readonly string[] = []): string[] {
  const english = new Set(englishWords(locale));
  english.delete(lab.GROUP);
  const own = texts.map(text => code.reduce((left, line) => left.replaceAll(line, ''), text.replace(PATHS, '')));
  return own.filter(text => words(text).some(word => english.has(word)));
}

test('a page in German has no English text of ours', async ({ page }) => {
  expect(englishWords()).toEqual(expect.arrayContaining(['ranks', 'Restart', 'cell', 'the', 'running']));
  lab.writeNotebook('german.ipynb', ['print(42 + rank)']);
  await openLab(page);
  await page.evaluate(
    () =>
      void (window as unknown as ILabWindow).jupyterapp.commands.execute('docmanager:open', { path: 'german.ipynb' })
  );
  await lab.sessionReady(page);
  await lab.execute(page, 'jupyter-dist:show-sidebar');
  await lab.runCell(page, 0);
  await expect(lab.cell(page, 0).items.first()).toBeVisible();
  await expectGerman(page, 'Ranks', 'Gruppen', 'Zusammengefasst');
  expect(await commandTexts(page)).toContain('Ranks neu starten…');

  await lab.execute(page, 'jupyter-dist:open-variables');
  await expectGerman(page, 'Nach Namen oder Typ filtern');
  await lab.execute(page, 'jupyter-dist:open-timeline');
  await expectGerman(page, 'Vergrößern');
  await lab.execute(page, 'jupyter-dist:open-curves');
  await expectGerman(page, 'Keine Kurven: Eine Zelle hat welche');
  await lab.picker(page).click();
  await expectGerman(page, 'Nur diese Zelle', 'Größe ändern…');
  await page.keyboard.press('Escape');
  await lab.execute(page, 'jupyter-dist:start-group');
  await expect(page.locator('.jpd-StartForm')).toBeVisible(); // until then, a line that it looks for environments
  await expectGerman(page, 'Umgebung');
  await page.locator('.jpd-StartForm-more summary').last().click();
  await page.getByLabel('Behaltene Stände').fill('0');
  await expectGerman(page, 'Weitere Optionen', 'Sie muss von 1 bis 100 sein.');
  const labels = page.locator('.jpd-StartForm-row label');
  const cut = await labels.evaluateAll(all =>
    all.filter(node => node.scrollWidth > node.clientWidth + 1).map(node => node.textContent)
  );
  expect(cut).toEqual([]);
});

const LANGUAGES = ['de_DE', 'fr_FR', 'ja_JP', 'zh_CN'];
const HANG = '(dist.barrier, tuple)[rank]()';
const DEATH = 'if rank == 1: os._exit(3)';

/** Nothing of ours that is shown is English, but for the code of cells. */
async function expectNoEnglish(page: Page, locale: string, code: readonly string[]): Promise<void> {
  await expect(async () => expect(englishOf(await shownTexts(page), locale, code)).toEqual([])).toPass({
    timeout: 60000
  });
}

test('a hang and a dead rank have no English sentence of ours in any language', async ({ page, request }) => {
  const dying = { jupyter_dist: { group: 'q3', ranks: 'all' } };
  const cells = [{ source: `import os\n${DEATH}`, metadata: dying }, { source: 'print("all")', metadata: dying }, HANG];
  for (const group of ['q1', 'q3']) {
    await startGroup(request, group, 2);
  }
  lab.writeNotebook('q1.ipynb', cells, lab.onRanks('all', 'q1'));
  const card = page.locator('.jpd-Verdict:not([hidden])');
  const died = lab.cell(page, 0).node.locator('.jpd-Ranks-error');
  await lab.openNotebook(page, 'q1.ipynb');
  for (const at of cells.keys()) {
    await lab.runCell(page, at);
  }
  await expect(card).toBeVisible();
  await lab.saveNotebook(page);
  for (const locale of LANGUAGES) {
    await speak(request, locale);
    await lab.reload(page);
    await lab.execute(page, 'jupyter-dist:show-sidebar');
    await expect(card.getByRole('listitem').first()).toContainText(HANG);
    await expect(died).toBeVisible();
    await lab.runCell(page, 1); // the advice is beside the button, for as long as this page is there
    await expect(lab.cell(page, 1).node).toContainText('!1');
    await expectNoEnglish(page, locale, [HANG, DEATH, 'barrier', 'rank_dead', 'import os', 'print("all")']);
  }
  await shutdownAll(request);
});

const SLEEP = 'time.sleep(0.25 * rank)';
const SLOW = `import time, torch, torch.distributed as dist
while True:
    ${SLEEP}
    dist.all_reduce(torch.ones(1))`;
const STUCK = 'except BaseException: pass';
const SILENT = 'ctypes.PyDLL(None).sleep(1000)';
const DEAF = `import ctypes, time
while rank == 0:
    try: time.sleep(1000)
    ${STUCK}
while True: ${SILENT}`;

/** What a sentence quotes: names, paths and the words of other programs. */
function quoted(words: { values: unknown[] }[] | null): string[] {
  const values = (words ?? []).flatMap(({ values }) => values);
  return values.flatMap(value => (Array.isArray(value) ? quoted(value) : typeof value === 'string' ? value : []));
}

const quotedByLauncher = (launcher: { text_words: Parameters<typeof quoted>[0] }): string[] =>
  quoted(launcher.text_words);

test('a slow cell, silent ranks, missing nodes and launchers have no English sentence of ours in any language', async ({
  page,
  request
}) => {
  await speak(request, 'default');
  await startGroup(request, 'q4', 2);
  await startGroup(request, 'q5', 2);
  const nodes = { launcher: 'external', num_nodes: 2, ranks_per_node: 1, accelerator: 'cpu', name: 'q6' };
  expect((await request.post('/jupyter-dist/api/groups', { data: nodes })).ok()).toBe(true);
  await run(request, 'q5', DEAF);
  lab.writeNotebook('q4.ipynb', [SLOW], lab.onRanks('all', 'q4'));
  const slow = lab.cell(page, 0);
  const line = slow.node.locator('.jpd-NoteLine').filter({ hasText: SLEEP });
  const ranks = page.getByRole('region', { name: 'q5' });
  await lab.openNotebook(page, 'q4.ipynb');
  await lab.execute(page, 'jupyter-dist:show-sidebar');
  await lab.runCell(page, slow);
  await request.post('/jupyter-dist/api/groups/q5/interrupt', { data: { ranks: '0' } });
  await expect(ranks).toContainText('Interrupted');
  await expect(ranks).toContainText('Not responding');
  await expect(line).toBeVisible();
  await lab.saveNotebook(page);
  const code = [
    SLEEP,
    STUCK,
    SILENT,
    'dist.all_reduce(torch.ones(1))',
    'time.sleep',
    'all_reduce',
    'train.ipynb',
    ...`${DEAF}\n${SLOW}`.split('\n')
  ];
  const { launchers } = await (await request.get('/jupyter-dist/api/launchers')).json();
  // A preset with a mistake is in this server's file: its name, and what the library that finds it says.
  const { presets } = await (await request.get('/jupyter-dist/api/presets')).json();
  const others = presets.flatMap(({ name, label, problem }: Record<string, string>) => [name, label, problem ?? '']);
  for (const locale of LANGUAGES) {
    await speak(request, locale);
    await page.reload();
    // Opened again, not only loaded again: what a file has is shown at once, what the server has later.
    await lab.openNotebook(page, 'q4.ipynb');
    await lab.execute(page, 'jupyter-dist:show-sidebar');
    await expect(ranks).toContainText('GIL');
    await expect(line).toBeVisible();
    await line.getByRole('button').last().click();
    await expect(slow.node.getByRole('table').first()).toBeVisible();
    await expectNoEnglish(page, locale, code);
    await lab.execute(page, 'jupyter-dist:start-group');
    await page.locator('.jpd-StartForm-reasons summary').last().click();
    await page.locator('.jpd-StartForm-more summary').last().click();
    await page.locator('.jpd-StartForm-more:last-of-type input[type="number"]').first().fill('-1');
    await expect(page.locator('.jpd-StartForm-reasons li').filter({ hasText: 'PBS' })).toContainText('Jupyter');
    await expectNoEnglish(page, locale, [...code, ...others, ...launchers.flatMap(quotedByLauncher)]);
  }
  await shutdownAll(request);
});
