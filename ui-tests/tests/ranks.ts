/** What the tests of the sidebar and of the rank output share: a page with JupyterLab, and groups by REST. */
import { APIRequestContext, expect, Page, test } from '@playwright/test';

const API = '/jupyter-dist/api';
/** JupyterLab on a busy machine. */
const LOAD_MS = 120000;

interface ILabWindow {
  jupyterapp?: {
    restored: Promise<void>;
    commands: { execute(id: string, args?: object): Promise<unknown> };
    shell: { widgets(area: string): Iterable<IMainWidget>; collapseRight(): void };
  };
}

interface IMainWidget {
  dispose(): void;
  context?: { model: { dirty: boolean } };
}

/** Where a page has its JupyterLab: two in one workspace, and the second loads again for one of its own. */
export function address(page: Page): string {
  const index = page.context().pages().indexOf(page);
  return index > 0 ? `/lab/workspaces/page-${index}` : '/lab';
}

/** JupyterLab, empty, and at rest: what it opens by itself comes after it says that it was restored, and takes the focus. */
export async function openLab(page: Page): Promise<void> {
  const launcher = page.locator('.jp-Launcher');
  if (new URL(page.url()).pathname.startsWith('/lab')) {
    // The last test may have ended while the page loaded.
    await page.waitForFunction(() => 'jupyterapp' in window, null, { timeout: 30000 }).catch(() => undefined);
  }
  // JupyterLab may open the file of a reloaded page's address once more, long after it was restored.
  const isReloaded = (): boolean =>
    (performance.getEntriesByType('navigation')[0] as PerformanceNavigationTiming | undefined)?.type === 'reload';
  const tries = (await page.evaluate(isReloaded)) ? 0 : 3;
  for (let tried = 0; (await emptied(page)) && tried < tries; tried++) {
    // What a reload opens again may come only now.
    const isThere = await launcher.waitFor({ timeout: 10000 }).then(
      () => true,
      () => false
    );
    if (isThere) {
      return;
    }
  }
  await page.goto(`${address(page)}?reset`);
  // Survives that JupyterLab loads again: a second page does, for a workspace of its own.
  await page.waitForFunction(
    async () => {
      const { jupyterapp } = window as unknown as ILabWindow;
      await jupyterapp?.restored;
      return jupyterapp !== undefined;
    },
    null,
    { timeout: LOAD_MS }
  );
  await launcher.waitFor({ timeout: LOAD_MS });
}

/** Close all that the last test opened, and what was said of it; false if this page cannot be emptied so, and is to be loaded again. */
export async function emptied(page: Page): Promise<boolean> {
  return page.evaluate(async () => {
    const { jupyterapp } = window as unknown as ILabWindow;
    if (jupyterapp === undefined) {
      return false;
    }
    await jupyterapp.restored;
    const { commands, shell } = jupyterapp;
    const documents = (): IMainWidget[] => [...shell.widgets('main')].filter(widget => widget.context);
    for (const widget of documents()) {
      widget.context!.model.dirty = false; // else it asks whether to save it
    }
    for (const widget of shell.widgets('down')) {
      widget.dispose();
    }
    await commands.execute('application:close-all');
    for (let tries = 0; tries < 200 && documents().length > 0; tries++) {
      await new Promise(resolve => setTimeout(resolve, 50)); // a document closes later than this command ends
    }
    await commands.execute('apputils:dismiss-notification'); // all of them
    shell.collapseRight();
    // A cell that ended meanwhile has JupyterLab ask whether to save its notebook.
    return documents().length === 0 && document.querySelector('.jp-NotebookPanel, .jp-Dialog') === null;
  });
}

/** Choose in the menu of a group's card, in the sidebar. */
export async function chooseInCard(page: Page, group: string, label: string | RegExp): Promise<void> {
  await page.getByRole('button', { name: `More actions on ${group}` }).click();
  await page
    .getByRole('menu', { name: `Actions on ${group}` })
    .getByRole('menuitem', { name: label })
    .click();
}

/** Run a command, and do not wait for it: some wait for the user. */
export async function command(page: Page, id: string, args: object = {}): Promise<void> {
  await page.evaluate(
    ([id, args]) => {
      void (window as unknown as ILabWindow).jupyterapp!.commands.execute(id as string, args as object);
    },
    [id, args] as const
  );
}

/**
 * The seconds that the page's thread computes meanwhile. Not how long that takes, nor how long the page does not answer:
 * on a busy machine it waits for other programs as well, for as long as they like.
 */
export async function computed(page: Page, meanwhile: () => Promise<void>): Promise<number> {
  const session = await page.context().newCDPSession(page);
  const seconds = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')!.value;
  };
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const before = await seconds();
  await meanwhile();
  const found = (await seconds()) - before;
  await session.detach();
  test.info().annotations.push({ type: 'computed (s)', description: found.toFixed(1) });
  return found;
}

/** End the kernels of these notebooks, or all. */
export async function endSessions(request: APIRequestContext, ...names: string[]): Promise<void> {
  for (const { id, path } of await (await request.get('/api/sessions')).json()) {
    if (names.length === 0 || names.includes(path)) {
      await request.delete(`/api/sessions/${id}`);
    }
  }
}

/** Nothing runs. */
export async function shutdownAll(request: APIRequestContext): Promise<void> {
  const { groups } = await (await request.get(`${API}/groups`)).json();
  for (const group of groups) {
    await request.delete(`${API}/groups/${group.id}`);
  }
}

/** A group of CPU ranks, ready. */
export async function startGroup(request: APIRequestContext, name: string, ranks: number): Promise<void> {
  const answer = await request.post(`${API}/groups`, {
    data: { name, num_ranks: ranks, accelerator: 'cpu' }
  });
  expect(answer.status()).toBe(201);
  // Many ranks on a busy machine take their time.
  let state = 'starting';
  for (let tries = 0; state === 'starting' && tries < 6; tries++) {
    const ready = await request.get(`${API}/groups/${name}?wait=30&not_state=starting`);
    state = (await ready.json()).state;
  }
  expect(state).toBe('ready');
}

/** Run a cell; waits for its end when told to. */
export async function run(
  request: APIRequestContext,
  group: string,
  code: string,
  options: { ranks?: string; wait?: boolean } = {}
): Promise<void> {
  const answer = await request.post(`${API}/groups/${group}/executions`, {
    data: { code, ranks: options.ranks ?? 'all', notebook: 'train.ipynb' }
  });
  expect(answer.status()).toBe(202);
  if (options.wait) {
    const { id } = await answer.json();
    await request.get(`${API}/groups/${group}/executions/${id}?wait=30`);
  }
}

/** Choose what new processes begin with, in the dialog that replaces dead ranks, and confirm. */
export async function replaceByDialog(page: Page, choice: string): Promise<void> {
  const dialog = page.getByRole('dialog').filter({ hasText: 'The new processes begin with' });
  await expect(dialog.locator(':focus')).toHaveCount(1); // which a dialog takes after it is shown
  await dialog.getByRole('radio', { name: choice, exact: true }).check();
  await dialog.getByRole('button', { name: 'Replace' }).click();
  await expect(dialog).toHaveCount(0);
}
