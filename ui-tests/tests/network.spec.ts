/** Nothing comes from elsewhere, and a strict page policy is enough. */
import { expect, Page, test } from '@playwright/test';
import { createHash } from 'crypto';
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

test('the page needs no other host and no more than its own scripts', async ({ page, context, baseURL }) => {
  const { host } = new URL(baseURL!);
  const elsewhere: string[] = [];
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
  await cell.editor.click();
  await page.keyboard.press('Control+Enter');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');
  await command(page, 'jupyter-dist:show-sidebar');
  await expect(page.getByRole('region', { name: 'Group train' }).getByText('idle').first()).toBeVisible();
  await command(page, 'jupyter-dist:open-log', { group: lab.GROUP, rank: 0 });
  await expect(page.getByRole('log', { name: 'Output of rank 0' })).toContainText('colour 0');
  await command(page, 'jupyter-dist:start-group');
  await expect(page.getByRole('form', { name: 'Start a group of ranks' })).toBeVisible();

  const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen);
  expect(elsewhere).toEqual([]);
  expect(seen.filter(violation => violation.startsWith('enforce'))).toEqual([]);
  // Only reported: what would be refused were nothing allowed for JupyterLab's sake.
  expect(seen.filter(violation => violation.includes('/extensions/jupyter-dist/'))).toEqual([]);
});
