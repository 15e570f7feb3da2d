/** What the tests of the sidebar and of the rank output share: a page with JupyterLab, and groups by REST. */
import { APIRequestContext, expect, Page } from '@playwright/test';

const API = '/jupyter-dist/api';

interface ILabWindow {
  jupyterapp: {
    restored: Promise<void>;
    commands: { execute(id: string, args?: object): Promise<unknown> };
  };
}

/** JupyterLab, empty, and at rest: what it opens by itself comes after it says that it was restored, and takes the focus. */
export async function openLab(page: Page): Promise<void> {
  await page.goto('/lab?reset');
  await page.waitForFunction(() => (window as unknown as ILabWindow).jupyterapp !== undefined);
  await page.evaluate(async () => {
    await (window as unknown as ILabWindow).jupyterapp.restored;
  });
  await page.locator('.jp-Launcher').waitFor();
}

/** Run a command, and do not wait for it: some wait for the user. */
export async function command(page: Page, id: string, args: object = {}): Promise<void> {
  await page.evaluate(
    ([id, args]) => {
      void (window as unknown as ILabWindow).jupyterapp.commands.execute(id as string, args as object);
    },
    [id, args] as const
  );
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
