import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    environment: 'jsdom',
    // Loading jsdom and JupyterLab's packages again for each file takes four times as long as all tests.
    isolate: false,
    // A safety net, many times what a busy machine needs.
    testTimeout: 60000,
    include: ['labextension/src/**/*.spec.ts?(x)'],
    setupFiles: ['./vitest.setup.ts'],
    server: {
      // JupyterLab's packages are ES modules that import CSS and JSON: let vite load them.
      deps: {
        inline: [
          /@jupyterlab/,
          /@jupyter\//,
          /@lumino/,
          /@microsoft/,
          /@rjsf/,
          /@codemirror/
        ]
      }
    }
  }
});
