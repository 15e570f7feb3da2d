// `make pictures`: the pictures of docs/images, from a real JupyterLab with real ranks.
process.env.JUPYTER_DIST_TEST_PORT ??= '18979';
process.env.JUPYTER_DIST_IMAGES ??= require('path').resolve('../docs/images');
const base = require('./playwright.config.ts').default;

module.exports = {
  ...base,
  testDir: '.',
  testMatch: ['screenshots/**', 'tests/readme.spec.ts'],
  timeout: 300000,
  use: {
    ...base.use,
    viewport: { width: 1440, height: 900 },
    deviceScaleFactor: 1.5
  }
};
