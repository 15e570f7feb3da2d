/** Beside other extensions and in other frontends: jupyter-collaboration, Notebook 7, JupyterHub. */
import { defineConfig } from '@playwright/test';

process.env.JUPYTER_DIST_TEST_BESIDE = 'collaboration';
process.env.JUPYTER_DIST_TEST_PORT ??= '18969';
// The base reads both.
// eslint-disable-next-line @typescript-eslint/no-require-imports
const base = require('./playwright.config').default;

const hub = {
  ...base.webServer,
  command: 'jupyterhub --config jupyterhub_test_config.py',
  url: `http://127.0.0.1:${Number(process.env.JUPYTER_DIST_TEST_PORT) + 40}/some/prefix/hub/health`,
  // It ends the servers of its users first, and kills those that take longer than 10 s.
  gracefulShutdown: { signal: 'SIGTERM' as const, timeout: 60000 }
};

export default defineConfig({
  ...base,
  testDir: './beside',
  testIgnore: 'nbmodel.spec.ts',
  webServer: [base.webServer, hub]
});
