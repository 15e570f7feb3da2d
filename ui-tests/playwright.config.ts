/** Plain Playwright against a JupyterLab of its own, with real ranks. */
import { defineConfig } from '@playwright/test';
import * as fs from 'fs';
import * as os from 'os';
import * as path from 'path';

const port = Number((process.env.JUPYTER_DIST_TEST_PORT ??= '18989'));

/** Extensions that are installed for `make test-beside`: off but in the tests beside them. */
const OTHERS = {
  collaboration: ['@jupyter/collaboration-extension', '@jupyter/docprovider-extension'],
  nbmodel: ['@datalayer/jupyter-server-nbmodel']
};

// The workers read this file again: they must find the same folders.
if (!process.env.JUPYTERLAB_GALATA_ROOT_DIR) {
  // Short, for the paths of unix sockets.
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'jpd-'));
  for (const name of ['root', 'data', 'run', 'config']) {
    fs.mkdirSync(path.join(root, name));
  }
  // The kernel of this tree, whatever is installed.
  fs.mkdirSync(path.join(root, 'data', 'kernels'));
  fs.symlinkSync(path.resolve('../jupyter_dist/kernel/spec'), path.join(root, 'data', 'kernels', 'ranks'));
  process.env.JUPYTERLAB_GALATA_ROOT_DIR = path.join(root, 'root');
  // No groups, settings or signatures of the user who runs the tests.
  process.env.JUPYTER_DATA_DIR = path.join(root, 'data');
  process.env.JUPYTER_RUNTIME_DIR = path.join(root, 'run');
  process.env.JUPYTER_CONFIG_DIR = path.join(root, 'config');
  const off = Object.entries(OTHERS).filter(([name]) => name !== process.env.JUPYTER_DIST_TEST_BESIDE);
  configurePage(
    path.join(root, 'config'),
    // No question whether to show JupyterLab's news: it lies over the notebook of each page that is loaded.
    ['@jupyterlab/apputils-extension:announcements', ...off.flatMap(([, extensions]) => extensions)]
  );
  // The workers find there what this process has compiled of the tests.
  process.env.PWTEST_CACHE_DIR ??= path.join(os.tmpdir(), `playwright-transform-cache-${process.geteuid!()}`);
  // JupyterLab's test configuration makes folders of its own.
  process.env.TMPDIR = root;
  // This is the main process, whose last act comes after the server's end.
  process.on('exit', () => fs.rmSync(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 }));
}

// The headless build is the same engine without tabs and toolbars, which cost as much as half of a page's load.
const headlessShell = '/usr/bin/chromium-headless-shell';
process.env.CHROMIUM_WITH_WINDOWS ??= process.env.CHROMIUM ?? '/usr/bin/chromium';
process.env.CHROMIUM ??=
  fs.existsSync(headlessShell) && !process.argv.includes('--headed')
    ? headlessShell
    : process.env.CHROMIUM_WITH_WINDOWS;

export default defineConfig({
  testDir: './tests',
  workers: 1,
  retries: Number(process.env.RERUNS ?? 0),
  // Safety nets, many times what a busy machine needs: only a fault waits this long.
  timeout: 600000,
  expect: { timeout: 60000 },
  reporter: 'list',
  use: {
    baseURL: `http://localhost:${port}`,
    actionTimeout: 60000,
    navigationTimeout: 120000,
    viewport: { width: 1280, height: 900 },
    launchOptions: {
      executablePath: process.env.CHROMIUM,
      args: [
        '--no-sandbox',
        // All pages are one site: in a process that has loaded JupyterLab before, its code need not be compiled again.
        '--process-per-site',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync'
      ]
    }
  },
  webServer: {
    command: 'jupyter lab --config jupyter_server_test_config.py',
    url: `http://localhost:${port}/api`,
    timeout: 120000,
    reuseExistingServer: false,
    // The server shuts down in order, and its groups with it.
    gracefulShutdown: { signal: 'SIGTERM', timeout: 10000 }
  }
});

/** Extensions that are off in the page (the server's part is in jupyter_server_test_config.py), and no look at each
 * start whether JupyterLab should be built again, for which it starts node twice. */
function configurePage(config: string, off: string[]): void {
  const disabledExtensions = Object.fromEntries(off.map(name => [name, true]));
  const page = { disabledExtensions, buildAvailable: false, buildCheck: false };
  fs.mkdirSync(path.join(config, 'labconfig'));
  fs.writeFileSync(path.join(config, 'labconfig', 'page_config.json'), JSON.stringify(page));
}
