import type { JupyterFrontEnd } from '@jupyterlab/application';
import { nullTranslator } from '@jupyterlab/translation';
import type { ITranslator } from '@jupyterlab/translation';
import { afterEach, expect, it, vi } from 'vitest';
import { CellGuard } from '../../model/cells/executor/cellguard';
import type { IDistNotebooks } from '../../tokens';
import { executorPlugin, guardPlugin, kernelExecutorPlugin } from './executor';

const app = {} as JupyterFrontEnd;
const broken = (): never => {
  throw new Error('broken by a test');
};

const activate = (notebooks: IDistNotebooks | null, translator: unknown = nullTranslator): CellGuard =>
  executorPlugin.activate(app, notebooks, translator as ITranslator) as CellGuard;

/** The console's errors; nothing is printed. */
const errors = (): ReturnType<typeof vi.spyOn> => vi.spyOn(console, 'error').mockImplementation(() => undefined);

afterEach(() => {
  vi.restoreAllMocks();
});

it('runs cells by the executor of the notebooks', () => {
  const notebooks = { executor: { runCell: async () => true } } as unknown as IDistNotebooks;
  expect(activate(notebooks).trouble).toBeNull();
});

it.each<[string, IDistNotebooks | null]>([
  ['are not there', null],
  ['have no executor', {} as IDistNotebooks],
  ['have something else', { executor: 1 } as unknown as IDistNotebooks],
  ['throw', Object.defineProperty({} as IDistNotebooks, 'executor', { get: broken })]
])('refuses rank cells if the notebooks %s', (_, notebooks) => {
  errors();
  expect(activate(notebooks)).toBeInstanceOf(CellGuard);
  expect(activate(notebooks).trouble).toMatchObject({ code: 'extension_failed' });
});

it('reports what failed in the console', () => {
  const said = errors();
  activate(Object.defineProperty({} as IDistNotebooks, 'executor', { get: broken }));
  expect(said).toHaveBeenCalledWith(
    expect.stringContaining('jupyter_dist: cells cannot run on ranks'),
    new Error('broken by a test')
  );
});

it.each<[string, unknown]>([
  ['throws', { load: broken }],
  ['has no texts', { load: () => null }],
  ['has texts that throw', { load: () => ({ __: broken }) }]
])('is in English if the translator %s', (_, translator) => {
  const said = errors();
  const executor = activate(null, translator);
  expect(executor.trouble?.message).toBe('jupyter_dist did not start on this page, so cells cannot run on ranks.');
  expect(kernelExecutorPlugin.activate(app, translator as ITranslator)).toMatchObject({
    trouble: { code: 'executor_disabled' }
  });
  expect(guardPlugin.activate(app, executor, null, translator as ITranslator)).toEqual({ trouble: executor.trouble });
  expect(said).toHaveBeenCalledTimes(3);
});
