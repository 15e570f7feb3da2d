import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    environment: 'jsdom',
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
