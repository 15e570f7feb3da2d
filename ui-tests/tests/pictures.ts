/** Takes pictures of a real JupyterLab in both themes, for the docs and to be looked at. */
import { expect, Locator, Page } from '@playwright/test';
import * as path from 'path';
import * as lab from './lab';

const THEMES = { light: 'JupyterLab Light', dark: 'JupyterLab Dark' };
const RESULTS = path.join(__dirname, '..', 'test-results');

/** `make screenshots` names docs/images; the tests leave what docs/images has as it is. */
export const IMAGES = process.env.JUPYTER_DIST_IMAGES ?? path.join(RESULTS, 'images');
/** To be looked at; no page shows these. */
const LOOKS = path.join(RESULTS, 'looks');

export const PYTHON = { language_info: { name: 'python' } };

/** Take a picture for docs/images in each theme. */
export async function shoot(page: Page, name: string, target: Page | Locator = page, folder = IMAGES): Promise<void> {
  // A notification lies over whatever it meets.
  await page.addStyleTag({ content: '.Toastify__toast { display: none !important; }' });
  for (const [theme, title] of Object.entries(THEMES)) {
    await setTheme(page, title);
    await page.mouse.move(5, 895);
    await target.screenshot({ path: path.join(folder, `${name}-${theme}.png`), animations: 'disabled' });
  }
}

/** Take pictures that are looked at and not kept. */
export async function look(page: Page, name: string, target: Page | Locator = page): Promise<void> {
  await shoot(page, name, target, LOOKS);
}

/** Open a notebook whose cells run on ranks, without the file browser, so that it and the ranks have the room. */
export async function openPictured(page: Page, name: string, cells: string[]): Promise<void> {
  lab.writeNotebook(name, cells, { ...lab.onRanks(), ...PYTHON });
  // Its language is known, so JupyterLab asks for no kernel.
  await page.goto(`/lab/tree/${name}?reset`);
  await expect(lab.picker(page)).toBeVisible();
  await lab.execute(page, 'application:toggle-left-area');
}

export async function showSidebar(page: Page): Promise<void> {
  await lab.execute(page, 'jupyter-dist:show-sidebar');
  await expect(page.locator('.jpd-Sidebar')).toBeVisible();
}

/** Run a cell until its summary has a text. */
export async function runCell(page: Page, index: number, end: string): Promise<lab.ICell> {
  const cell = await lab.runCell(page, index);
  await expect(cell.summary).toContainText(end);
  return cell;
}

async function setTheme(page: Page, theme: string): Promise<void> {
  await page.evaluate(async name => {
    const { jupyterapp } = window as unknown as ILabCommands;
    await jupyterapp.commands.execute('apputils:change-theme', { theme: name });
  }, theme);
  // The attribute is set when the theme's style sheet has been loaded.
  await expect(page.locator('body')).toHaveAttribute('data-jp-theme-name', theme);
  await page.evaluate(() => document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(done))));
}

interface ILabCommands {
  jupyterapp: { commands: { execute(id: string, args: object): Promise<unknown> } };
}
