import js from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

// What the Jupyter rules only warn of is an error here, from the first commit.
function strict(configs) {
  return configs.map(config => ({
    ...config,
    rules: Object.fromEntries(Object.keys(config.rules ?? {}).map(rule => [rule, 'error']))
  }));
}

export default defineConfig([
  {
    ignores: [
      '**/node_modules/',
      'lib/',
      '**/.venv/',
      'benchmarks/',
      'docs/',
      'jupyter_dist/',
      'ui-tests/test-results/',
      'ui-tests/playwright-report/',
      'ui-tests/third-party/labextension/'
    ]
  },
  js.configs.recommended,
  tseslint.configs.recommended,
  { plugins: { jupyter } },
  strict(jupyter.configs.recommended),
  {
    files: ['labextension/src/**/*.{ts,tsx}', 'vitest.*'],
    languageOptions: {
      parserOptions: {
        project: './tsconfig.test.json',
        tsconfigRootDir: import.meta.dirname
      }
    }
  },
  {
    files: ['labextension/src/**/*.{ts,tsx}'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      // The prebuilt extension is one small bundle: there is nothing to defer.
      'jupyter/prefer-lazy-imports': 'off',
      // An interface and its token share a name, as everywhere in JupyterLab.
      '@typescript-eslint/no-redeclare': 'off',
      complexity: ['error', 12],
      curly: ['error', 'all'],
      eqeqeq: 'error',
      // From here on: is it one idea? A hint; nothing is cut to stay below a number.
      'max-lines': ['warn', 400],
      'max-lines-per-function': ['error', { max: 60, skipComments: true }],
      'prefer-arrow-callback': 'error'
    }
  },
  {
    // What another process answers, or does not.
    files: ['labextension/src/**/*.{ts,tsx}'],
    ignores: ['**/*.spec.ts', '**/*.spec.tsx'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression:matches([callee.name='fetch'], [callee.property.name='makeRequest']):not(CallExpression[callee.name='limited'] CallExpression)",
          message: 'A proxy may never answer: wait with limited of services/rest/limits.ts.'
        },
        {
          selector:
            "NewExpression:matches([callee.name=/^(WebSocket|EventSource|XMLHttpRequest)$/], [callee.property.name='WebSocket']):not(ClassDeclaration[id.name='Channel'] NewExpression)",
          message: "The page's only connection is that of services/channel/channel.ts, which has time limits."
        }
      ]
    }
  },
  {
    files: ['**/*.spec.ts', '**/*.spec.tsx'],
    rules: {
      'max-lines-per-function': 'off',
      'no-restricted-properties': [
        'error',
        ...['waitFor', 'waitUntil'].map(property => ({
          object: 'vi',
          property,
          message: 'Its limit is a second: use expect.poll, whose limit vitest.config.mts sets.'
        }))
      ]
    }
  },
  {
    // Tests read the interface as it is.
    files: ['ui-tests/**'],
    rules: {
      'jupyter/no-untranslated-string': 'off',
      'jupyter/galata-prefer-notebook-cell-helper': 'off'
    }
  },
  {
    // What has failed only sometimes, on a busy machine.
    files: ['ui-tests/**/*.spec.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: "CallExpression[callee.property.name='getByLabel'] > Literal[value='Run cells on']",
          message: 'A notebook that was just closed may have a picker, too: use lab.picker(page).'
        },
        {
          selector:
            "ExpressionStatement[expression.type='AwaitExpression']:has(MemberExpression[property.name='click'][object.property.name='editor']) + ExpressionStatement[expression.type='AwaitExpression']:has(MemberExpression[property.name='press']):has(Literal[value=/^(Control|Shift).Enter$/])",
          message: 'The keys may go elsewhere before the editor has the focus: use lab.runCell.'
        }
      ]
    }
  },
  {
    files: ['ui-tests/**/*.js'],
    languageOptions: {
      sourceType: 'commonjs',
      globals: { process: 'readonly', window: 'readonly', document: 'readonly', __dirname: 'readonly' }
    },
    rules: { '@typescript-eslint/no-require-imports': 'off' }
  }
]);
