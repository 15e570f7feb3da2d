/**
 * The pages of a worker share one browser context, and with it what Chromium has loaded and compiled of JupyterLab:
 * most of a test's time would go into that. A page and what is stored in it are each test's own.
 */
import { BrowserContext, test as base } from '@playwright/test';

export { expect } from '@playwright/test';

export const test = base.extend<object, { sharedContext: BrowserContext }>({
  sharedContext: [
    async ({ browser }, use, { project }) => {
      const { baseURL, viewport } = project.use;
      const context = await browser.newContext({ baseURL, viewport });
      await use(context);
      await context.close();
    },
    { scope: 'worker' }
  ],
  context: async ({ sharedContext }, use) => {
    await use(sharedContext);
    await Promise.all(sharedContext.pages().map(page => page.close()));
    await sharedContext.clearCookies();
  },
  page: async ({ context }, use) => {
    const page = await context.newPage();
    await use(page);
    await page.evaluate(() => window.localStorage.clear()).catch(() => undefined); // it may be closed
  }
});
