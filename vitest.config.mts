import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    environment: 'jsdom',
    // Loading jsdom and JupyterLab's packages again for each file takes four times as long as all tests.
    isolate: false,
    // Safety nets, many times what a busy machine needs. Tests wait for states with expect.poll (eslint.config.mjs).
    testTimeout: 120000,
    expect: { poll: { timeout: 60000 } },
    include: ['labextension/src/**/*.spec.ts?(x)'],
    setupFiles: ['./vitest.setup.ts'],
    server: {
      // JupyterLab's packages are ES modules that import CSS and JSON: let vite load them.
      deps: {
        inline: [/@jupyterlab/, /@jupyter\//, /@lumino/, /@microsoft/, /@rjsf/, /@codemirror/]
      }
    }
  }
});
