/** A third-party extension, built against the package as npm would install it: `make third-party` builds it. */
import { Page } from '@playwright/test';
import { execFileSync } from 'child_process';
import * as fs from 'fs';
import * as path from 'path';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { editPageConfig } from './pageconfig';
import { command } from './ranks';

test.use({ ownPage: true });

const NAME = 'jupyter-dist-third-party';
const BUILT = path.join(__dirname, '..', 'third-party', 'labextension');

test.beforeAll(() => {
  test.setTimeout(600000);
  execFileSync('make', ['--no-print-directory', 'third-party'], {
    cwd: path.join(__dirname, '..', '..'),
    stdio: 'pipe'
  });
});

test.afterEach(({ request }) => lab.shutdownGroup(request));

/** As if it had been installed: the page's configuration names it, and its files are there. */
async function install(page: Page): Promise<void> {
  const { jupyterlab } = JSON.parse(fs.readFileSync(path.join(BUILT, 'package.json'), 'utf8'));
  await editPageConfig(page, { federated_extensions: [{ name: NAME, ...jupyterlab._build }] });
  await page.route(`**/extensions/${NAME}/**`, route => {
    const [, file] = new URL(route.request().url()).pathname.split(`/extensions/${NAME}/`);
    return route.fulfill({ contentType: 'text/javascript', path: path.join(BUILT, file) });
  });
}

test('adds a section, a badge, an output action and a note by the published tokens', async ({ page, request }) => {
  await install(page);
  await lab.startGroup(request);
  lab.writeNotebook('third.ipynb', [{ source: 'print(rank)', metadata: { slow: true } }, 'rank']);
  await lab.openNotebook(page, 'third.ipynb');
  const [first, second] = [lab.cell(page, 0), lab.cell(page, 1)];
  await expect(first.node.getByRole('note', { name: 'This cell takes its time' })).toHaveText('slow');
  await expect(second.node.getByRole('note')).toHaveCount(0);

  await lab.runCell(page, first, 'Shift+Enter');
  await expect(first.node.getByText('2 items, noted by another extension')).toBeAttached();
  await first.node.getByRole('button', { name: 'Count items' }).click();
  await expect(page.getByText('2 items of ranks 0-1 of train')).toBeVisible();

  await command(page, 'jupyter-dist:show-sidebar');
  const section = page.getByRole('region', { name: 'Count' });
  await expect(section).toContainText('1 groups, counted by another extension');
  await section.getByRole('button', { name: 'Count' }).click();
  await expect(section).not.toContainText('counted');
  await section.getByRole('button', { name: 'Count' }).click();
  await expect(section).toContainText('1 groups');
});
