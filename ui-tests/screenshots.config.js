// `make screenshots`: the pictures of docs/images, from a real JupyterLab with real ranks.
process.env.JUPYTER_DIST_TEST_PORT ??= '18979';
const base = require('./playwright.config.ts').default;

module.exports = {
  ...base,
  testDir: './screenshots',
  timeout: 300000,
  use: {
    ...base.use,
    viewport: { width: 1440, height: 900 },
    deviceScaleFactor: 1.5
  }
};
