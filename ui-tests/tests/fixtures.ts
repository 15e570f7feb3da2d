/**
 * The tests of a worker share one browser context and, unless they ask for a page of their own, one page: loading
 * JupyterLab is most of what a short test costs. `openLab` and `openNotebook` begin with an empty JupyterLab either way.
 *
 * A page of its own, by `test.use({ ownPage: true })`, has a test that changes what a page loads or how: settings on
 * the server, disabled plugins, routes of WebSockets, scripts that run first. The shared one waits meanwhile, empty.
 */
import { BrowserContext, expect, Page, test as base } from '@playwright/test';
import { emptied, endSessions } from './ranks';
import { scene } from './scene';

export { expect };

interface IWorker {
  context: BrowserContext;
  page: Page | null;
  /** Errors of our code that nothing caught, in any page of the context. */
  errors: string[];
}

/** Where our code is loaded from. */
const OURS = '/extensions/jupyter-dist/';

export const test = base.extend<{ ownPage: boolean }, { worker: IWorker }>({
  ownPage: [false, { option: true }],
  worker: [
    async ({ browser }, use, { project }) => {
      const { baseURL, viewport } = project.use;
      const worker: IWorker = { context: await browser.newContext({ baseURL, viewport }), page: null, errors: [] };
      worker.context.on('weberror', uncaught => {
        const { stack = '' } = uncaught.error();
        if (stack.includes(OURS)) {
          worker.errors.push(stack);
        }
      });
      await use(worker);
      await worker.context.close();
    },
    { scope: 'worker' }
  ],
  context: async ({ worker }, use) => {
    await use(worker.context);
    const others = worker.context.pages().filter(page => page !== worker.page);
    await Promise.all(others.map(page => page.close()));
    await worker.context.unrouteAll();
    await worker.context.clearCookies();
  },
  page: async ({ context, worker, ownPage, viewport }, use, testInfo) => {
    if (ownPage && worker.page !== null) {
      await emptied(worker.page);
    }
    const page = ownPage ? await context.newPage() : (worker.page ??= await context.newPage());
    await use(page);
    const errors = worker.errors.splice(0);
    const failed = testInfo.status !== testInfo.expectedStatus;
    const seen = failed ? await scene(page) : [];
    await page.evaluate(() => window.localStorage.clear()).catch(() => undefined); // it may be closed
    if (failed) {
      await endSessions(context.request); // where a notebook has one, the next try is asked for no kernel
    }
    if (!ownPage && (failed || !(await tidy(page, viewport)))) {
      worker.page = null; // closed with the context's other pages
    }
    if (failed) {
      throw Object.assign(new Error([...seen, ...errors].join('\n')), { stack: '' }); // reported beside the failure itself
    }
    expect(errors, 'uncaught errors of our code in a page').toEqual([]);
  }
});

/** Take away what a test did to the page itself; false if it cannot serve another test. */
async function tidy(page: Page, viewport: { width: number; height: number } | null): Promise<boolean> {
  if (page.isClosed()) {
    return false;
  }
  page.removeAllListeners('dialog');
  await page.unrouteAll();
  if (viewport !== null) {
    await page.setViewportSize(viewport);
  }
  return (await page.getByRole('dialog').count()) === 0;
}
