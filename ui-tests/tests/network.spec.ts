/** Nothing comes from elsewhere, and a strict page policy is enough. */
import { expect, Page, test } from '@playwright/test';
import { createHash } from 'crypto';
import * as fs from 'fs';
import * as path from 'path';
import * as lab from './lab';
import { command } from './ranks';

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

/** What JupyterLab itself needs beside 'self': inline styles, icons in style sheets, compiled schemas. */
const BARE = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:"
].join('; ');

/** Serve JupyterLab's page under the policy; its own inline scripts are let in by their hashes. */
async function enforce(page: Page): Promise<void> {
  await page.route(/\/lab(\/tree\/[^?]*)?(\?.*)?$/, async route => {
    const response = await route.fetch();
    const body = await response.text();
    const hashes = [...body.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([^]*?)<\/script>/g)].map(
      ([, source]) => `'sha256-${createHash('sha256').update(source).digest('base64')}'`
    );
    const scripts = `script-src 'self' ${hashes.join(' ')}`;
    await route.fulfill({
      response,
      body,
      headers: {
        ...response.headers(),
        'content-security-policy': `${BARE}; ${scripts} 'unsafe-eval'`,
        'content-security-policy-report-only': `${BARE}; ${scripts}`
      }
    });
  });
}

/** The sizes of all scripts that were built. */
function built(): number[] {
  const folder = path.join(__dirname, '..', '..', 'jupyter_dist', 'labextension', 'static');
  const names = fs.readdirSync(folder).filter(name => name.endsWith('.js'));
  return names.map(name => fs.statSync(path.join(folder, name)).size);
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((a, b) => a + b, 0);
}

test('a part of the page that cannot be loaded says so, and is loaded when the network is back', async ({ page }) => {
  lab.writeNotebook('offline.ipynb', ['for step in range(9): print(f"step {step} loss {1 / (step + 1 + rank)}")']);
  await lab.openNotebook(page, 'offline.ipynb');
  const cell = await lab.runCell(page, 0);
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  const parts = /\/jupyter-dist\/static\/(sidebar|curves)\.[^/]*js/;
  await page.route(parts, route => route.abort('internetdisconnected'));
  await cell.ranks.hover();
  await cell.tab('Curves').click();
  const missing = 'A part of jupyter_dist could not be loaded.';
  await expect(cell.node.locator('.jpd-Curves')).toContainText(missing);
  await command(page, 'jupyter-dist:show-sidebar');
  const sidebar = page.getByRole('region', { name: 'Ranks', exact: true });
  await expect(sidebar).toContainText(missing);
  await page.unroute(parts);
  await expect(page.getByRole('region', { name: 'Group train' })).toBeVisible();
  await expect(cell.node.locator('.jpd-Curve-title')).toHaveText(['loss']);
  await expect(page.locator('.jpd-Error, .jpd-Curves').getByText(missing)).toHaveCount(0);
});

test('a page without a network says so within seconds, and has all output when it is back', async ({
  page,
  context
}) => {
  const code = 'import time\nfor i in range(40):\n    time.sleep(0.5)\n    print("tick", i, flush=True)';
  lab.writeNotebook('offline.ipynb', [code]);
  await lab.openNotebook(page, 'offline.ipynb');
  const cell = await lab.runCell(page, 0);
  await expect(cell.items.first()).toContainText('tick 1');
  // Where there is the loopback alone, as in CI, the browser is offline from the beginning, and sends no event.
  const sendsEvents = await page.evaluate(() => window.navigator.onLine);
  const setOffline = async (isOffline: boolean): Promise<void> => {
    await context.setOffline(isOffline);
    if (!sendsEvents) {
      await page.evaluate(name => void window.dispatchEvent(new Event(name)), isOffline ? 'offline' : 'online');
    }
  };
  await setOffline(true);
  try {
    await expect(cell.summary).toContainText('not connected', { timeout: 15000 });
  } finally {
    await setOffline(false);
  }
  await expect(cell.summary).not.toContainText('not connected');
  await expect(cell.prompt).toHaveText(/^\[\d+\]:$/);
  await expect.poll(async () => (await lab.shownText(cell)).match(/tick/g)?.length).toBe(40);
  const dialog = page.getByRole('dialog').getByRole('button', { name: 'Close' });
  await dialog.click({ timeout: 2000 }).catch(() => undefined); // JupyterLab's, if it has noticed
});

test('the page needs no other host and no more than its own scripts', async ({ page, context, baseURL }) => {
  const { host } = new URL(baseURL!);
  const elsewhere: string[] = [];
  const scripts = new Map<string, number>();
  page.on('response', async response => {
    const { pathname } = new URL(response.url());
    if (/\/extensions\/jupyter-dist\/.*\.js$/.test(pathname)) {
      scripts.set(pathname.split('/').pop()!, (await response.body()).length);
    }
  });
  const isLoaded = (part: string): boolean => [...scripts.keys()].some(name => name.includes(part));
  const note = (url: string): void => {
    if (/^(https?|wss?):/.test(url) && new URL(url).host !== host) {
      elsewhere.push(url);
    }
  };
  page.on('request', request => note(request.url()));
  page.on('websocket', socket => note(socket.url()));
  await page.addInitScript(() => {
    const seen: string[] = ((window as unknown as { seen: string[] }).seen = []);
    document.addEventListener('securitypolicyviolation', event => {
      seen.push([event.disposition, event.violatedDirective, event.blockedURI, event.sourceFile].join(' '));
    });
  });
  // A page that the test hands out has no address of its own: Chromium asks before it lets that reach this machine.
  await context.grantPermissions(['local-network-access']);
  await enforce(page);
  lab.writeNotebook('strict.ipynb', ['print(f"\\x1b[38;5;99mcolour\\x1b[0m {rank}")\nrank']);
  await lab.openNotebook(page, 'strict.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  // What is not needed yet is not loaded yet, and that is much of it.
  expect(['logpanel', 'sidebar', 'scriptexport', 'uplot'].filter(isLoaded)).toEqual([]);
  expect(sum(scripts.values())).toBeLessThan(0.66 * sum(built()));
  await command(page, 'jupyter-dist:show-sidebar');
  await expect(page.getByRole('region', { name: 'Group train' }).getByText('idle').first()).toBeVisible();
  await command(page, 'jupyter-dist:open-log', { group: lab.GROUP, rank: 0 });
  await expect(page.getByRole('log', { name: 'Output of rank 0' })).toContainText('colour 0');
  await command(page, 'jupyter-dist:start-group');
  await expect(page.getByRole('form', { name: 'Start a group of ranks' })).toBeVisible();
  expect(['logpanel', 'sidebar', 'scriptexport'].filter(isLoaded)).toEqual(['logpanel', 'sidebar']);

  const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen);
  expect(elsewhere).toEqual([]);
  expect(seen.filter(violation => violation.startsWith('enforce'))).toEqual([]);
  // Only reported: what would be refused were nothing allowed for JupyterLab's sake.
  expect(seen.filter(violation => violation.includes('/extensions/jupyter-dist/'))).toEqual([]);
});
