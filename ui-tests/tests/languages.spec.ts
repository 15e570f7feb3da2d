/** The page in German: no English of ours in the sidebar, a cell's output, the toolbar, the commands and the panels. */
import { APIRequestContext, Page } from '@playwright/test';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { openLab } from './ranks';

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

/** Words that stand in English strings and in no German one. */
function englishWords(): string[] {
  const template = fs.readFileSync(`${LOCALE}/jupyter_dist.pot`, 'utf8');
  const german = JSON.parse(fs.readFileSync(`${LOCALE}/de_DE/LC_MESSAGES/jupyter_dist.json`, 'utf8'));
  delete german[''];
  const known = new Set(words(Object.values(german).flat().join(' ')));
  const strings = [...template.matchAll(/"(.*)"$/gm)].map(([, text]) => text.replaceAll('\\n', ' '));
  return [...new Set(words(strings.join(' ')))].filter(word => !known.has(word));
}

function words(text: string): string[] {
  return text.match(/\p{L}{2,}/gu) ?? [];
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
  const english = new Set(englishWords());
  for (const text of some) {
    await expect.poll(async () => (await shownTexts(page)).filter(shown => shown.includes(text))).not.toEqual([]);
  }
  const texts = [...(await shownTexts(page)), ...(await commandTexts(page))];
  const own = texts.map(text => text.replace(PATHS, ''));
  expect(own.filter(text => words(text).some(word => english.has(word)))).toEqual([]);
}

test('a page in German has no English text of ours', async ({ page }) => {
  expect(englishWords()).toEqual(expect.arrayContaining(['ranks', 'Restart', 'cell', 'the', 'running']));
  lab.writeNotebook('german.ipynb', ['print(42 + rank)', '(dist.barrier, tuple)[rank]()']);
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

  // The hang of a cell, in its card and in the notification.
  await lab.runCell(page, 1);
  const [card, code] = [page.locator('.jpd-Verdict:not([hidden])'), '(dist.barrier, tuple)[rank]()'];
  await expect(card.getByRole('listitem').first()).toContainText(`Zeile 1 von Zelle [2]: ${code}`);
  const english = new Set(englishWords());
  const own = (await card.innerText()).replaceAll(code, '');
  expect(words(own).filter(word => english.has(word))).toEqual([]);
  await expect(page.locator('.Toastify__toast')).toContainText('Kann nicht enden: Aufruf von Rank 0');
  await expect(page.locator('.Toastify__toast')).not.toContainText(/ cell | line | waits /);
  await card.locator('.jpd-Verdict-interrupt').click();
  await expect(card).toHaveCount(0);
  // Notes of the group are the server's, in English; this one ends with the next cell.
  await lab.runCell(page, 0);
  await expect(page.getByText('The process group was re-created')).toHaveCount(0);

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
  const labels = page.locator('.jpd-StartForm-row label');
  const cut = await labels.evaluateAll(all =>
    all.filter(node => node.scrollWidth > node.clientWidth + 1).map(node => node.textContent)
  );
  expect(cut).toEqual([]);
});
