// What a saved notebook shows to readers without this extension. With JPD_SHOTS=DIRECTORY, its pictures and PDFs are kept there.
import { execFileSync } from 'child_process';
import { Locator } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { uninstall } from './pageconfig';
import { endSessions, openLab } from './ranks';

test.describe.configure({ mode: 'serial' }); // a test reads what the one before has saved
test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(async ({ request }) => {
  await endSessions(request, 'portable-magics.ipynb');
  await lab.shutdownGroup(request);
});

const FIGURE = `import matplotlib.pyplot as plt
print("a figure of each rank")
plt.figure(figsize=(4, 1.6))
plt.plot(torch.randn(200, generator=torch.Generator().manual_seed(rank)).cumsum(0))
plt.title(f"random walk of rank {rank}");`;
const SAME = `from IPython.display import HTML, display
print("loss", rank)
display(HTML("<table class='metrics'><tr><th>step</th><th>loss</th></tr><tr><td>1</td><td>0.5</td></tr></table>"))`;
const FAIL = `print("before <b>it</b>")
if rank == 1:
    raise ValueError("bad <i>value</i>")`;
const CELLS = ['print("hello from all")\nprint("I am", rank)', FIGURE, SAME, FAIL];

/** The outputs of a cell that can be seen. */
const outputs = (node: Locator): Locator => node.locator('.jp-Cell-outputArea > .jp-OutputArea-child:visible');

test('a saved notebook shows figures, tables and errors with their ranks in nbconvert and without this extension', async ({
  page
}) => {
  lab.writeNotebook('portable.ipynb', CELLS);
  await lab.openNotebook(page, 'portable.ipynb');
  for (const i of CELLS.keys()) {
    await lab.runCell(page, i);
    await expect(lab.cell(page, i).summary).toContainText(i === 3 ? 'rank 1 error' : '2 ranks \u00b7 ok');
  }
  // With the extension all of it is in one place, as long as the page is open and when it is opened again.
  const check = async (): Promise<void> => {
    for (const i of CELLS.keys()) {
      await expect(outputs(lab.cell(page, i).node)).toHaveCount(1);
    }
    await expect(lab.cell(page, 1).node.locator('img:visible')).toHaveCount(2);
    await expect(lab.cell(page, 2).node.locator('.metrics:visible')).toHaveCount(1);
    await expect(lab.cell(page, 3).ranks.getByText('ValueError: bad <i>value</i>')).toBeVisible();
  };
  await check();
  await lab.saveNotebook(page);
  const saved = lab.readNotebook('portable.ipynb');
  const types = saved.cells[3].outputs.map(output => (output as unknown as { output_type: string }).output_type);
  expect(types).toContain('error');
  const text = JSON.stringify(saved);
  expect(text.split("class='metrics'")).toHaveLength(2 + 1); // in the source, and once in the outputs
  await lab.reload(page);
  await check();
  await lab.cell(page, 1).tab('Rank 1').click();
  await expect(lab.cell(page, 1).node.locator('img:visible')).toHaveCount(1);
});

test('a text of emoji that is too long to be saved whole is cut between them, and half a character is escaped', async ({
  page
}) => {
  lab.writeNotebook('emoji.ipynb', [
    "print('x' + chr(0x1f642) * 20000)",
    "from IPython.display import HTML\nHTML('<b>' + chr(0xd83d) + '</b>')"
  ]);
  await lab.openNotebook(page, 'emoji.ipynb');
  for (const i of [0, 1]) {
    await lab.runCell(page, i);
    await expect(lab.cell(page, i).node.locator('.jp-Cell-outputArea')).toContainText(
      i === 0 ? '\u{1f642}' : '\\ud83d'
    );
  }
  await lab.saveNotebook(page);
  const [text, shown] = lab.readNotebook('emoji.ipynb').cells.map(({ outputs }) => JSON.stringify(outputs));
  // Not compared as texts: a failure would print all of them.
  expect(text.includes('\u{1f642}\\n","...\\n","\u{1f642}')).toBe(true);
  expect(/[^\\]\\ud[89a-f]/.test(text + shown)).toBe(false);
  expect(shown.includes('\\\\ud83d')).toBe(true);
});

test('so do cells of magics and of the Python client', async ({ page }) => {
  lab.writeNotebook(
    'portable-magics.ipynb',
    [
      '%load_ext jupyter_dist\n%dist_init --name train',
      FIGURE,
      `import sys\n${FAIL}`,
      '%dist_mode -d',
      `from jupyter_dist.client import attach\nattach("train").run('''\n${SAME}\n''')`
    ],
    {}
  );
  await lab.openNotebook(page, 'portable-magics.ipynb', { kernel: 'Python 3 (ipykernel)' });
  for (const i of [0, 1, 2, 3, 4]) {
    await lab.runCell(page, i);
    await expect(lab.cell(page, i).prompt).toHaveText(/^\[\d+\]:$/);
  }
  // Live, and after a reload: all of ranks is in one place; what the kernel says of a failure is not said twice.
  const check = async (): Promise<void> => {
    await expect(lab.cell(page, 1).node.locator('img:visible')).toHaveCount(2);
    await expect(outputs(lab.cell(page, 1).node)).toHaveCount(1);
    await expect(outputs(lab.cell(page, 2).node)).toHaveCount(1);
    await expect(lab.cell(page, 2).ranks.getByText('ValueError: bad <i>value</i>')).toBeVisible();
    await expect(lab.cell(page, 4).node.locator('.metrics:visible')).toHaveCount(1);
    await expect(outputs(lab.cell(page, 4).node)).toHaveCount(1);
  };
  await check();
  await lab.saveNotebook(page);
  await lab.reload(page);
  await check();
});

test('nbconvert shows them, as it is', async ({ context }) => {
  const names = ['portable', 'portable-magics'];
  execFileSync('jupyter', ['nbconvert', '--to', 'html', ...names.map(name => lab.rootPath(`${name}.ipynb`))], {
    stdio: 'pipe',
    timeout: 120000
  });
  for (const name of names) {
    const html = await context.newPage();
    await html.goto(`file://${lab.rootPath(`${name}.html`)}`, { waitUntil: 'domcontentloaded' });
    await expect(html.locator('.jp-OutputArea img')).toHaveCount(2);
    await expect(html.locator('.metrics')).toHaveCount(1);
    await expect(html.locator('.jp-OutputArea')).toContainText(
      name === 'portable'
        ? [
            /ranks 0-1.*hello from all.*rank 0.*I am 0.*rank 1.*I am 1/s,
            /rank 0/,
            /loss 1/,
            /before <b>it<\/b>.*ValueError.*bad <i>value<\/i>/s
          ]
        : [/train/, /rank 0/, /before <b>it<\/b>.*ValueError.*bad <i>value<\/i>/s, /kernel/, /loss 1/]
    );
    await expect(
      html.locator('.jp-OutputArea .ansi-red-intense-fg, .jp-OutputArea .ansi-red-fg').first()
    ).toBeVisible();
    await expect(html.locator('.jp-OutputArea script')).toHaveCount(0);
    if (process.env.JPD_SHOTS) {
      await html.screenshot({ path: `${process.env.JPD_SHOTS}/${name}-nbconvert.png`, fullPage: true });
      await html.pdf({ path: `${process.env.JPD_SHOTS}/${name}.pdf`, format: 'A4', printBackground: true });
    }
    await html.close();
  }
});

test.describe(() => {
  test.use({ ownPage: true });

  test('a JupyterLab without this extension shows it', async ({ page }) => {
    await uninstall(page);
    await openLab(page);
    await page.evaluate(async () => {
      const { jupyterapp } = window as unknown as {
        jupyterapp: { commands: { execute(id: string, args: object): Promise<unknown> } };
      };
      await jupyterapp.commands.execute('docmanager:open', { path: 'portable.ipynb' });
    });
    // The file names the kernel Ranks, whose kernelspec this JupyterLab still finds.
    await expect(page.locator('.jp-NotebookPanel-toolbar')).toContainText('Ranks');
    await expect(page.getByRole('dialog')).toHaveCount(0);
    await expect(page.locator('.jpd-RankPicker')).toHaveCount(0);
    const cell = (i: number): Locator => page.locator('.jp-Notebook .jp-CodeCell').nth(i);
    await expect(cell(0)).toContainText('hello from all');
    await expect(cell(1).locator('.jp-OutputArea img')).toHaveCount(2);
    await expect(cell(1)).toContainText(/rank 0/);
    await expect(cell(2).locator('table.metrics, .jp-RenderedHTML table')).toHaveCount(1);
    await expect(cell(3).locator('[data-mime-type="application/vnd.jupyter.stderr"]')).toContainText('ValueError');
    if (process.env.JPD_SHOTS) {
      await page.setViewportSize({ width: 1280, height: 1500 });
      await page.screenshot({ path: `${process.env.JPD_SHOTS}/portable-plain.png` });
    }
  });
});
