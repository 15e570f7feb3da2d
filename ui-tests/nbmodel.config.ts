/** Beside jupyter-server-nbmodel, which runs cells in the server and provides JupyterLab's cell executor, too. */
import { defineConfig } from '@playwright/test';

process.env.JUPYTER_DIST_TEST_BESIDE = 'nbmodel';
process.env.JUPYTER_DIST_TEST_PORT ??= '18959';
// The base reads both.
// eslint-disable-next-line @typescript-eslint/no-require-imports
const base = require('./playwright.config').default;

export default defineConfig({ ...base, testDir: './beside', testMatch: 'nbmodel.spec.ts' });
