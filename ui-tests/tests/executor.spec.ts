/** Who runs the cells when our own executor is disabled, fails, or is not the one that JupyterLab took. */
import { Page } from '@playwright/test';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { addOtherExecutor, breakPlugin, disable } from './pageconfig';
import { address } from './ranks';

test.use({ ownPage: true });

const KERNEL = 'Python 3 (ipykernel)';
const WHERE = ['print("here" if "rank" in globals() else "on the kernel")'];
interface IWay {
  name: string;
  prepare(page: Page): Promise<void>;
  says: RegExp;
  picker: boolean;
}

async function refusesRankCells(page: Page, { name, prepare, says, picker }: IWay): Promise<void> {
  const file = `executor-${name}.ipynb`;
  const onKernel = { source: WHERE[0], metadata: { jupyter_dist: { target: 'kernel' } } };
  lab.writeNotebook(file, [WHERE[0], onKernel], {
    ...lab.onRanks(),
    kernelspec: { name: 'python3', display_name: KERNEL, language: 'python' }
  });
  await prepare(page);
  await page.goto(`${address(page)}/tree/${file}?reset`);
  await expect(page.getByText(`${KERNEL} | Idle`)).toBeVisible();
  await expect(page.locator('.Toastify')).toContainText(/cells cannot run on ranks|plugin that runs cells on ranks is disabled/);
  const [refused, ran] = [lab.cell(page, 0), lab.cell(page, 1)];
  await refused.editor.click();
  await page.keyboard.press('Control+Enter');
  await expect(refused.node.locator('.jp-OutputArea-output')).toContainText(says);
  if (picker) {
    await expect(page.getByRole('alert').filter({ hasText: 'Ranks unavailable' })).toBeVisible();
  }
  await ran.editor.click();
  await page.keyboard.press('Control+Enter');
  await expect(ran.node.locator('.jp-OutputArea-output')).toHaveText('on the kernel\n');
  // As after any error, the cells after a refused one do not run.
  await lab.execute(page, 'notebook:run-all-cells');
  await expect(ran.prompt).toHaveText('[1]:');
  await expect(refused.node.locator('.jp-OutputArea-output')).toContainText(says);
}

test('with the executor disabled, kernel cells run, and a rank cell is refused in red', ({ page }) =>
  refusesRankCells(page, {
    name: 'disabled',
    prepare: () => disable(page, 'jupyter-dist:executor'),
    says: /plugin that runs cells on ranks is disabled.*enable jupyter-dist:executor/s,
    picker: true
  }));

test('with the executor broken, kernel cells run, and a rank cell is refused in red', ({ page }) =>
  refusesRankCells(page, {
    name: 'broken',
    prepare: () => breakPlugin(page, 'jupyter-dist:service'),
    says: /jupyter_dist did not start on this page/,
    picker: false
  }));

test('with the executor taken, kernel cells run, and a rank cell is refused in red', ({ page }) =>
  refusesRankCells(page, {
    name: 'taken',
    prepare: () => addOtherExecutor(page),
    says: /Another extension runs the cells.*disable other-executor:plugin/s,
    picker: true
  }));
