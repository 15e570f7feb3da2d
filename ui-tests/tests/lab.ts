/** What the tests of cells share: notebooks as files, a group, the cells of a page. */
import { APIRequestContext, Dialog, expect, Locator, Page } from '@playwright/test';
import * as fs from 'fs';
import * as path from 'path';
import { openLab } from './ranks';

interface ILabWindow {
  jupyterapp: {
    commands: { execute(id: string, args?: object): Promise<unknown> };
    shell: {
      currentWidget: {
        context: { path: string; ready: Promise<void> };
        sessionContext: { ready: Promise<void> };
      } | null;
    };
  };
}

export const GROUP = 'train';
/** The notebook that is in front; JupyterLab 4.7 hides the others by their content's visibility. */
export const SHOWN_NOTEBOOK = '.jp-NotebookPanel:not(.lm-mod-hidden, [style*="content-visibility: hidden"])';

/** A file in the server's folder. */
export function rootPath(name: string): string {
  return path.join(process.env.JUPYTERLAB_GALATA_ROOT_DIR!, name);
}

/** The same, of a file that is yet to come: what an earlier try of the test wrote is removed. */
export function newPath(name: string): string {
  fs.rmSync(rootPath(name), { force: true });
  return rootPath(name);
}

/** Write a notebook; a cell is its source or a whole cell. */
export function writeNotebook(name: string, cells: (string | object)[], metadata: object = onRanks()): void {
  const notebook = {
    nbformat: 4,
    nbformat_minor: 5,
    metadata,
    cells: cells.map((cell, i) => ({
      id: `cell-${i}`,
      cell_type: 'code',
      metadata: {},
      outputs: [],
      execution_count: null,
      ...(typeof cell === 'string' ? { source: cell } : cell)
    }))
  };
  fs.writeFileSync(rootPath(name), JSON.stringify(notebook));
}

interface INotebook {
  metadata: Record<string, unknown>;
  cells: { metadata: Record<string, unknown>; outputs: { data: Record<string, string[]> }[] }[];
}

export function readNotebook(name: string): INotebook {
  return JSON.parse(fs.readFileSync(rootPath(name), 'utf8'));
}

export function onRanks(ranks = 'all', group = GROUP): object {
  return { jupyter_dist: { group, ranks } };
}

/** Open a notebook, without a kernel unless one is named. */
export async function openNotebook(
  page: Page,
  name: string,
  { kernel = null }: { kernel?: string | null } = {}
): Promise<void> {
  await openLab(page);
  await page.evaluate(async path => {
    await (window as unknown as ILabWindow).jupyterapp.commands.execute('docmanager:open', { path });
  }, name);
  const { jupyter_dist: target, kernelspec } = readNotebook(name).metadata as INotebookMetadata;
  if (!target && !kernelspec) {
    await chooseKernel(page, kernel);
  } else {
    await sessionReady(page);
    if (kernel) {
      await execute(page, 'notebook:change-kernel');
      await chooseKernel(page, kernel);
    }
  }
  await expect(picker(page)).toBeVisible();
  // The cells of `cell` are those of the only notebook: with another one in the page, a test would wait for a hidden cell.
  await expect(page.locator('.jp-NotebookPanel')).toHaveCount(1);
  if (kernel) {
    await expect(page.getByText(`${kernel} | Idle`)).toBeVisible();
  }
}

interface INotebookMetadata {
  jupyter_dist?: object;
  kernelspec?: object;
}

/** Answer the question for a kernel. */
async function chooseKernel(page: Page, kernel: string | null): Promise<void> {
  const dialog = page.getByRole('dialog').filter({ has: page.locator('select') }); // in any language
  // By its value: 'No Kernel' is in the page's language.
  await dialog.locator('select').selectOption(kernel === null ? { value: 'null' } : { label: kernel });
  await dialog.locator('.jp-mod-accept').click();
  await expect(dialog).toHaveCount(0);
}

/** The notebook is open, and JupyterLab has asked for no kernel and will not: its session waits for the answer. */
export async function sessionReady(page: Page): Promise<void> {
  await expect(page.locator(`${SHOWN_NOTEBOOK} .jp-Cell`).first()).toBeVisible();
  await page.evaluate(async () => {
    const { currentWidget } = (window as unknown as ILabWindow).jupyterapp.shell;
    await currentWidget!.context.ready;
    await currentWidget!.sessionContext.ready;
  });
  await expect(page.getByRole('dialog')).toHaveCount(0);
}

/** Load the page again, with the notebook that it shows. */
export async function reload(page: Page): Promise<void> {
  const path = await page.evaluate(
    () => (window as unknown as ILabWindow).jupyterapp.shell.currentWidget!.context.path
  );
  await layoutStored(page, `notebook:${path}`);
  const leave = (dialog: Dialog): void => void dialog.accept();
  page.on('dialog', leave);
  await page.reload();
  page.off('dialog', leave);
  await sessionReady(page);
}

/** JupyterLab stores its layout a second after a change, or later: before that, a reload opens what was shown before. */
export async function layoutStored(page: Page, name: string): Promise<void> {
  const [, workspace = 'default'] = /\/workspaces\/([^/?]+)/.exec(page.url()) ?? [];
  const layout = async (): Promise<string> => {
    const answer = await page.request.get(`/lab/api/workspaces/${workspace}`);
    return JSON.stringify((await answer.json()).data?.['layout-restorer:data'] ?? {});
  };
  await expect.poll(layout).toContain(JSON.stringify(name));
}

/** Run a command of JupyterLab; does not wait for its end. */
export async function execute(page: Page, command: string): Promise<void> {
  await page.evaluate(id => {
    void (window as unknown as ILabWindow).jupyterapp.commands.execute(id);
  }, command);
}

export async function saveNotebook(page: Page): Promise<void> {
  await page.evaluate(async () => {
    await (window as unknown as ILabWindow).jupyterapp.commands.execute('docmanager:save');
  });
}

/**
 * The picker of the notebook that is shown: one control, which has the target and its ranks. The toolbar of a notebook
 * that was just closed may still have its picker in the toolbar's menu, outside of the panel.
 */
export function picker(page: Page): Locator {
  return page.locator(`${SHOWN_NOTEBOOK} .jpd-RankPicker-button`);
}

/** What the picker opens, or the choice of ranks of a console. */
export function ranksDialog(page: Page): Locator {
  return page.getByRole('dialog', { name: /^(Where cells run|Choose ranks)$/ });
}

/** Open the picker of the notebook that is shown, or the choice of ranks in the toolbar of another panel. */
export async function openRanks(page: Page, panel = page.locator(SHOWN_NOTEBOOK)): Promise<Locator> {
  await panel.getByRole('button', { name: /^(Run cells on|Ranks for the next cell)/ }).click();
  const dialog = ranksDialog(page);
  await expect(dialog).toBeVisible();
  return dialog;
}

/** Choose where the cells of the notebook that is shown run: the name of a group, or Kernel. */
export async function chooseTarget(page: Page, name: string): Promise<void> {
  const dialog = await openRanks(page);
  const target = dialog.getByRole('radio', { name: new RegExp(`^${name}( \\(|$)`) });
  await target.click();
  await expect(target).toBeChecked();
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
}

/** Press a button in the picker: start a group, or open what belongs to the chosen one. */
export async function chooseAction(page: Page, name: string): Promise<void> {
  await (await openRanks(page)).getByRole('button', { name, exact: true }).click();
}

export interface ICell {
  node: Locator;
  editor: Locator;
  prompt: Locator;
  ranks: Locator;
  summary: Locator;
  /** The items of the visible tab. */
  items: Locator;
  tab(name: string): Locator;
}

export function cell(page: Page, index: number): ICell {
  const node = page.locator('.jp-Notebook .jp-CodeCell').nth(index);
  return {
    node,
    editor: node.locator('.jp-InputArea-editor'),
    prompt: node.locator('.jp-InputPrompt'),
    ranks: node.locator('.jpd-Ranks'),
    summary: node.locator('.jpd-Ranks-summary'),
    items: node.locator('.jpd-RankItems:not(.lm-mod-hidden) .jpd-RankItem'),
    tab: name => node.getByRole('tab', { name })
  };
}

/** Run a cell as a user does: click into its editor, and press keys once it has the focus. */
export async function runCell(page: Page, which: number | ICell, keys = 'Control+Enter'): Promise<ICell> {
  const found = typeof which === 'number' ? cell(page, which) : which;
  await found.editor.click();
  await expect(found.editor.locator('.cm-content')).toBeFocused();
  await page.keyboard.press(keys);
  return found;
}

/** The text of the visible stream items, as written. */
export async function shownText({ node }: ICell): Promise<string> {
  const texts = await node
    .locator('.jpd-RankItems:not(.lm-mod-hidden) pre')
    .evaluateAll(nodes => nodes.map(pre => pre.textContent));
  return texts.join('');
}

/** Start the group of these tests. */
export async function startGroup(request: APIRequestContext, numRanks = 2): Promise<void> {
  const answer = await request.post('/jupyter-dist/api/groups', {
    data: { name: GROUP, num_ranks: numRanks, accelerator: 'cpu' }
  });
  expect(answer.status(), await answer.text()).toBe(201);
  await expect
    .poll(async () => {
      const url = `/jupyter-dist/api/groups/${GROUP}`;
      return (await (await request.get(url)).json()).state;
    })
    .toBe('ready');
}

export async function shutdownGroup(request: APIRequestContext): Promise<void> {
  await request.delete(`/jupyter-dist/api/groups/${GROUP}`);
}
