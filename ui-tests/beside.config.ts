/** Beside other extensions and in other frontends: jupyter-collaboration, Notebook 7, JupyterHub. */
import { defineConfig } from '@playwright/test';

process.env.JUPYTER_DIST_TEST_BESIDE = '1';
process.env.JUPYTER_DIST_TEST_PORT ??= '18969';
// The base reads both.
// eslint-disable-next-line @typescript-eslint/no-require-imports
const base = require('./playwright.config').default;

// Most of the time is JupyterLab's start, with more in it than elsewhere.
export default defineConfig({ ...base, testDir: './beside', timeout: 240000, expect: { timeout: 60000 } });
