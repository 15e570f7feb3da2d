/** Takes pictures of a real JupyterLab in both themes, for the docs and to be looked at. */
import { expect, Locator, Page } from '@playwright/test';
import * as fs from 'fs';
import * as path from 'path';
import * as lab from './lab';

const THEMES = { light: 'JupyterLab Light', dark: 'JupyterLab Dark' };
const DOCS = path.join(__dirname, '..', '..', 'docs', 'images');
const RESULTS = path.join(__dirname, '..', 'test-results');

/** `make pictures` names docs/images; the tests leave what docs/images has as it is. */
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

/** Two runs differ by 0.003, in times and memory; pictures with another toolbar, header and card by 0.02 to 0.12. */
const MAX_DIFFERENCE = 0.018;
const MAX_STRETCH = 1.15;

/**
 * Compare a picture that `shoot` has just taken with what the documentation shows. Both are made small: what differs
 * between two runs and two machines is letters, and what matters is what stands where.
 */
export async function expectAsInDocs(page: Page, name: string): Promise<void> {
  const read = (folder: string): string => fs.readFileSync(path.join(folder, `${name}.png`)).toString('base64');
  const { difference, stretch } = await page.evaluate(compare, [read(IMAGES), read(DOCS)] as const);
  const hint = `docs/images/${name}.png shows another product than this one: take the pictures again by 'make pictures'.`;
  expect(stretch, hint).toBeLessThan(MAX_STRETCH);
  expect(difference, hint).toBeLessThan(MAX_DIFFERENCE);
}

/** In the page: the mean difference of two pictures, from 0 to 1, and how much longer one is than the other. */
async function compare(pictures: readonly [string, string]): Promise<{ difference: number; stretch: number }> {
  const [columns, rows] = [96, 60];
  const images = await Promise.all(
    pictures.map(async base64 => {
      const image = new Image();
      image.src = `data:image/png;base64,${base64}`;
      await image.decode();
      return image;
    })
  );
  const small = images.map(image => {
    // In steps of a half, so that each pixel counts.
    let source: CanvasImageSource = image;
    for (let scale = 8; scale >= 1; scale /= 2) {
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [columns * scale, rows * scale];
      const context = canvas.getContext('2d')!;
      context.imageSmoothingQuality = 'high';
      context.drawImage(source, 0, 0, canvas.width, canvas.height);
      source = canvas;
    }
    return (source as HTMLCanvasElement).getContext('2d')!.getImageData(0, 0, columns, rows).data;
  });
  const total = small[0].reduce((sum, value, i) => sum + Math.abs(value - small[1][i]), 0);
  const shapes = images.map(({ width, height }) => height / width);
  return {
    difference: total / (columns * rows * 3 * 255),
    stretch: Math.max(...shapes) / Math.min(...shapes)
  };
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
