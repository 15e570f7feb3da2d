/** Who runs the cells when our own executor is disabled, fails, or is not the one that JupyterLab took. */
import { Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { addOtherExecutor, breakPlugin, disable } from './pageconfig';
import { address } from './ranks';

test.use({ ownPage: true });

const KERNEL = 'Python 3 (ipykernel)';
const ON_RANKS = 'leaked = True';
const ON_KERNEL = 'print("leaked" if "leaked" in globals() else "on the kernel")';

interface IWay {
  name: string;
  prepare(page: Page): Promise<void>;
  says: RegExp;
  picker: boolean;
  /** What the browser's console says. */
  logs?: RegExp;
}

async function refusesRankCells(page: Page, { name, prepare, says, picker, logs }: IWay): Promise<void> {
  const file = `executor-${name}.ipynb`;
  const onKernel = { source: ON_KERNEL, metadata: { jupyter_dist: { target: 'kernel' } } };
  lab.writeNotebook(file, [ON_RANKS, onKernel], {
    ...lab.onRanks(),
    kernelspec: { name: 'python3', display_name: KERNEL, language: 'python' }
  });
  const errors: string[] = [];
  page.on('console', message => message.type() === 'error' && errors.push(message.text()));
  await prepare(page);
  await page.goto(`${address(page)}/tree/${file}?reset`);
  await expect(page.getByText(`${KERNEL} | Idle`)).toBeVisible();
  await expect(page.locator('.Toastify')).toContainText(
    /cells cannot run on ranks|plugin that runs cells on ranks is disabled/
  );
  const [refused, ran] = [lab.cell(page, 0), lab.cell(page, 1)];
  const error = refused.node.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"]');
  await lab.runCell(page, refused);
  await expect(error).toContainText(says);
  await expect(page.getByRole('alert').filter({ hasText: 'Ranks unavailable' })).toHaveCount(picker ? 1 : 0);
  await lab.runCell(page, ran);
  await expect(ran.node.locator('.jp-OutputArea-output')).toHaveText('on the kernel\n');
  // As after any error, the cells after a refused one do not run.
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(ran.prompt).toHaveText('[1]:');
  await expect(error).toContainText(says);
  // Nothing has run on the kernel since.
  await lab.runCell(page, ran);
  await expect(ran.prompt).toHaveText('[2]:');
  await expect(ran.node.locator('.jp-OutputArea-output')).toHaveText('on the kernel\n');
  if (logs) {
    expect(errors.join('\n')).toMatch(logs);
  }
}

test('with the executor disabled, kernel cells run, and a rank cell is refused in red', ({ page }) =>
  refusesRankCells(page, {
    name: 'disabled',
    prepare: () => disable(page, 'jupyter-dist:executor'),
    says: /plugin that runs cells on ranks is disabled.*enable jupyter-dist:executor/s,
    picker: true
  }));

/** What the executor needs, each of which may throw as it starts; the picker is there if those of its own have not. */
const BROKEN = [
  { id: 'service', picker: false },
  { id: 'groups', picker: false },
  { id: 'executions', picker: true },
  { id: 'notebooks', picker: true }
];

for (const { id, picker } of BROKEN) {
  test.describe(`jupyter-dist:${id} throws`, () => {
    test('with the executor broken, kernel cells run, and a rank cell is refused in red', ({ page }) =>
      refusesRankCells(page, {
        name: id,
        prepare: () => breakPlugin(page, `jupyter-dist:${id}`),
        says: /jupyter_dist did not start on this page/,
        picker,
        logs: /broken by a test/
      }));
  });
}

test('with an executor that throws itself, kernel cells run, and a rank cell is refused in red', ({ page }) =>
  refusesRankCells(page, {
    name: 'throws',
    prepare: () => breakPlugin(page, 'jupyter-dist:notebooks', 'executor'),
    says: /jupyter_dist did not start on this page/,
    picker: true,
    logs: /executor of this page failed to start.*broken by a test/
  }));

test('with the executor taken, kernel cells run, and a rank cell is refused in red', ({ page }) =>
  refusesRankCells(page, {
    name: 'taken',
    prepare: () => addOtherExecutor(page),
    says: /Another extension runs the cells.*disable other-executor:plugin/s,
    picker: true
  }));
