/** A page with 256 ranks on 32 nodes, which are simulated (tests/nodes/simulated.py): what is shown in place of 256 of each. */
import { ChildProcess, spawn } from 'child_process';
import * as path from 'path';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command } from './ranks';

const NODES = 32;
const SIZE = 8 * NODES;
const NAME = 'many';
const API = '/jupyter-dist/api';
let nodes: ChildProcess;

test.beforeAll(async ({ request }) => {
  const shape = { launcher: 'external', num_nodes: NODES, ranks_per_node: 8, accelerator: 'cpu' };
  const started = await request.post(`${API}/groups`, { data: { name: NAME, ...shape } });
  let group = await started.json();
  await expect(async () => {
    group = await (await request.get(`${API}/groups/${group.id}`)).json();
    expect(group.join).toBeTruthy();
  }).toPass();
  const [python, ...rest] = group.join.split(' ');
  nodes = spawn(python, ['-m', 'nodes.simulated', rest.pop(), '0', String(NODES)], {
    cwd: path.join(__dirname, '../../tests'),
    stdio: 'ignore'
  });
  await expect(async () => {
    group = await (await request.get(`${API}/groups/${group.id}?wait=10&not_state=starting`)).json();
    expect(group.state).toBe('ready');
  }).toPass({ timeout: 120000 });
});

test.afterAll(async ({ request }) => {
  await request.delete(`${API}/groups/${NAME}`);
  nodes?.kill();
});

test('the picker has a switch for each node, and finds and completes nodes', async ({ page }) => {
  lab.writeNotebook('many.ipynb', ['print(rank)'], { jupyter_dist: { group: NAME, ranks: 'all' } });
  await lab.openNotebook(page, 'many.ipynb');
  const dialog = await lab.openRanks(page);
  await expect(dialog.locator('.jpd-NodeToggle')).toHaveCount(NODES);
  await expect(dialog.locator('.jpd-RankToggle')).toHaveCount(0);
  await dialog.getByLabel('Find a node or rank').fill('sim017');
  await dialog.locator('.jpd-NodeToggle').click();
  await expect(page.getByLabel('Rank expression')).toHaveValue('136-143');
  const field = page.getByLabel('Rank expression');
  await field.fill('sim003');
  await expect(page.locator('datalist option')).toHaveAttribute('value', 'node:3');
  await field.press('Enter');
  await expect(field).toHaveValue('node:3');
});

test('a cell has tabs for the ranks that differ, and any other is found', async ({ page }) => {
  const code = 'if rank == 200:\n    raise ValueError("only here")\nprint("odd" if rank == 100 else "same")';
  lab.writeNotebook('differ.ipynb', [code], { jupyter_dist: { group: NAME, ranks: 'all' } });
  await lab.openNotebook(page, 'differ.ipynb');
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.summary).toContainText(`${SIZE - 1} ok, rank 200 error`);
  const tabs = page.locator('.jpd-OutputTabs-tab');
  await expect(tabs.locator('.jpd-OutputTabs-name')).toHaveText(['Folded', '200', '100']);
  await expect(page.locator('.jpd-RankFinder .jpd-StateBar').first()).toHaveAttribute('title', '255 ok, 1 error');
  const field = page.getByLabel('Show the output of rank').first();
  await field.fill('31');
  await field.press('Enter');
  await expect(page.getByRole('tab', { name: /^Rank 31, ok/ })).toHaveAttribute('aria-selected', 'true');
  await field.fill('256');
  await field.press('Enter');
  await expect(field).toHaveAttribute('aria-invalid', 'true');
});

test('the sidebar lists nodes, closed, and those with ranks in a state', async ({ page, request }) => {
  await request.post(`${API}/groups/${NAME}/ranks/77/kill`);
  lab.writeNotebook('nodes.ipynb', ['print(rank)'], { jupyter_dist: { group: NAME, ranks: 'all' } });
  await lab.openNotebook(page, 'nodes.ipynb');
  await command(page, 'jupyter-dist:show-sidebar');
  const rows = page.locator('.jpd-NodeRow');
  await expect(rows).toHaveCount(NODES);
  await expect(page.locator('.jpd-RankRow')).toHaveCount(0);
  await page.getByRole('button', { name: '1 dead', exact: true }).click();
  await expect(rows).toHaveCount(1);
  await rows.getByRole('button').first().click();
  await expect(page.locator('.jpd-RankRow')).toHaveCount(8);
  await expect(page.locator('.jpd-RankRow[data-state=dead]')).toHaveCount(1);
});
