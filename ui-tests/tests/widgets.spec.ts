import { expect, test } from './fixtures';
import * as lab from './lab';

test.use({ ownPage: true });

test.describe.configure({ mode: 'serial' });

test.beforeAll(({ request }) => lab.startGroup(request, 4));
test.afterAll(({ request }) => lab.shutdownGroup(request));

const SLIDER = `import ipywidgets
slider = ipywidgets.IntSlider(description=f"rank {rank}")
slider.observe(lambda change: print(f"rank {rank} has {change.new}"), "value")
slider`;

const BARS = `from tqdm.notebook import tqdm
for _ in tqdm(range(10 * (rank + 1)), desc=f"rank {rank}"): pass`;

test('a slider has its callback on its rank, on two pages and after a reload', async ({ page, context }) => {
  lab.writeNotebook('slider.ipynb', [SLIDER], lab.onRanks('0-1'));
  await lab.openNotebook(page, 'slider.ipynb');
  const cell = lab.cell(page, 0);
  await cell.editor.click();
  await page.keyboard.press('Control+Enter');
  const handles = cell.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .noUi-handle');
  await expect(handles).toHaveCount(2);
  await handles.nth(1).focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => lab.shownText(cell)).toContain('rank 1 has 1');

  // In the tab of a rank there is its widget only.
  await cell.tab('Rank 1').click();
  await expect(handles).toHaveCount(1);
  await expect(handles).toHaveAttribute('aria-valuenow', '1.0');
  await cell.tab('Folded').click();

  await lab.saveNotebook(page);
  page.on('dialog', dialog => void dialog.accept());
  await page.reload();
  await lab.sessionReady(page);
  await expect(handles).toHaveCount(2);
  await expect(handles.nth(1)).toHaveAttribute('aria-valuenow', '1.0');

  const second = await context.newPage();
  await lab.openNotebook(second, 'slider.ipynb');
  const there = lab.cell(second, 0);
  const others = there.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .noUi-handle');
  await expect(others).toHaveCount(2);
  await handles.nth(0).focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => lab.shownText(cell)).toContain('rank 0 has 1');
  await expect(others.nth(0)).toHaveAttribute('aria-valuenow', '1.0');
  await expect.poll(() => lab.shownText(there)).toContain('rank 0 has 1');
  await second.close();
});

test('each rank has its progress bar, and a dead one keeps its widgets as they were', async ({ page, request }) => {
  lab.writeNotebook('bars.ipynb', [BARS, SLIDER]);
  await lab.openNotebook(page, 'bars.ipynb');
  const bars = lab.cell(page, 0);
  await bars.editor.click();
  await page.keyboard.press('Shift+Enter');
  await expect(bars.summary).toContainText('4 ranks \u00b7 ok');
  const shown = bars.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .jpd-RankWidget');
  await expect(shown).toHaveCount(4);
  await expect(shown.nth(2)).toContainText('30/30');

  await page.keyboard.press('Shift+Enter');
  const cell = lab.cell(page, 1);
  const handles = cell.node.locator('.jpd-RankItems:not(.lm-mod-hidden) .noUi-handle');
  await expect(handles).toHaveCount(4);
  const answer = await request.post(`/jupyter-dist/api/groups/${lab.GROUP}/ranks/3/kill`);
  expect(answer.ok()).toBe(true);
  await expect(cell.node.locator('.jpd-RankWidget-note').nth(3)).toHaveText('Rank 3 is dead: this is its last state.');
  await handles.nth(0).focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => lab.shownText(cell)).toContain('rank 0 has 1');
});
