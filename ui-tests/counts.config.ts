/** `npx playwright test --config counts.config.ts`: a table of controls, words and pixels of a page, and its pictures. */
process.env.JUPYTER_DIST_TEST_PORT ??= '18969';
// Read after the port is set.
// eslint-disable-next-line @typescript-eslint/no-require-imports
const base = require('./playwright.config.ts').default;

export default { ...base, testDir: './counts', timeout: 1200000, retries: 0 };
