// Each surface in light and dark, at 2, 8 and 64 ranks, into docs/images.
// The pictures of the README are taken by tests/readme.spec.ts.
const { expect, test } = require('@playwright/test');
const lab = require('../tests/lab');
const { look, openPictured, PYTHON, runCell, shoot, showSidebar } = require('../tests/pictures');

const TRAIN = `torch.manual_seed(0)
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

for step in range(4):
    x = torch.randn(32, 64) * (1 + rank / 10)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    dist.all_reduce(model.weight.grad)
    optimizer.step()
    print(f"step {step}  loss {loss.item():.4f}")`;

const MANY = `t = torch.full((1,), float(rank))
dist.all_reduce(t)
print(f"sum of all ranks: {t.item():g}")

if rank % 16 == 5:
    print(f"rank {rank} has something to add")
print("done")`;

const FIGURE = `import matplotlib.pyplot as plt

plt.figure(figsize=(5, 2.2))
plt.plot(torch.randn(200, generator=torch.Generator().manual_seed(rank)).cumsum(0))
plt.title(f"random walk of rank {rank}");`;

const LONG = `for step in range(100_000):
    print(f"step {step}: nothing new")`;

const CURVES = `import math, random

random.seed(rank)
for step in range(400):
    noise = random.gauss(0, 0.05) * (4 if rank == 1 else 1)
    print(f"step {step}  loss {2 * math.exp(-step / 120) + 0.1 + noise:.4f}  lr {1e-3 * 0.99**step:.2e}")`;

const MODEL = `torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batch = torch.ones(16 if rank < 3 else 12, 8)
epochs, steps = 3, 100 + rank // 2
if rank == 1:
    model[2].bias.data[0] = 3.0`;

const TIMELINE = [
  `import time
held = []
for step in range(12):
    held.append(torch.ones((1 + rank) * 2_000_000))
    torch.randn(600, 600) @ torch.randn(600, 600)
    time.sleep(0.3)`,
  `time.sleep(1 + rank / 4)
if rank == 5:
    raise ValueError("only here")`,
  `held.clear()
for step in range(30):
    time.sleep(0.1 + (rank == 2) / 20)
    dist.all_reduce(torch.ones(4))`,
  `if rank == 3:
    dist.all_reduce(torch.ones(4))
else:
    time.sleep(1000)`
];

const TRAINED = `whole = torch.zeros(1024, 1024)
part = whole[:10]
net = torch.nn.Linear(1024, 1024, bias=False)
adam = torch.optim.Adam(net.parameters())
net(torch.ones(1, 1024)).sum().backward()
adam.step()
del whole`;

const SHORT = `def step():
    batch = torch.ones(4096, 1024)
    return torch.ones(1 << 46)

step()`;

const PROFILED = `%%profile
import time

layer = torch.nn.Linear(256, 256)
batch = torch.randn(64, 256)
for _ in range(3):
    layer(batch).square().mean().backward()
    if rank == 1:
        time.sleep(0.4)  # writes a picture
    dist.all_reduce(layer.weight.grad)`;

const SLOW = `import time
from torch.nn.parallel import DistributedDataParallel as DDP

torch.manual_seed(0)
model = DDP(torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def tokenise(batch):
    time.sleep(0.3 if rank == world_size - 1 else 0.1)
    return batch

while True:
    batch = tokenise(torch.ones(32, 64))
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()`;

const SKIPPED = `loss = torch.tensor(float(rank))
if rank == 0:
    dist.all_reduce(loss)
    print("mean loss", loss.item() / world_size)`;

/** Where the environment of whoever takes the pictures lies is nobody's business. */
async function shortenPaths(page) {
  // In the answer, not in the form: a change of theme makes its elements again.
  await page.route('**/jupyter-dist/api/environments*', async route => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace(/\/[^"\s]*(?=\/\.venv\/)/g, '~') });
  });
}

test.afterEach(async ({ request }) => lab.shutdownGroup(request));

for (const ranks of [2, 8, 64]) {
  test(`${ranks} ranks`, async ({ page, request }) => {
    await lab.startGroup(request, ranks);
    await openPictured(page, `ranks${ranks}.ipynb`, [ranks > 8 ? MANY : TRAIN]);
    await showSidebar(page);
    const cell = await runCell(page, 0, 'ok');
    await page.waitForTimeout(3000); // a few memory samples
    const take = ranks === 2 ? shoot : look;
    await take(page, `folded-${ranks}`, cell.node);
    await take(page, `sidebar-${ranks}`, page.locator('.jpd-Sidebar'));
  });
}

test('figure, long output, panel, form', async ({ page, request }) => {
  await lab.startGroup(request, 4);
  await openPictured(page, 'train.ipynb', [TRAIN, FIGURE, LONG, CURVES]);
  await showSidebar(page);
  await runCell(page, 0, 'ok');
  const figure = await runCell(page, 1, 'ok');
  await figure
    .tab(/^2\b|Rank 2/)
    .first()
    .click();
  await shoot(page, 'figure', figure.node);
  const curves = await runCell(page, 3, 'ok');
  await curves.tab('Curves').click();
  await curves.node.getByRole('button', { name: 'Line of rank 1' }).click();
  await shoot(page, 'curves', curves.ranks);
  const long = await runCell(page, 2, 'ok');
  await long.node.getByText('in the log of rank').first().scrollIntoViewIfNeeded();
  await look(page, 'long-output');
  await shortenPaths(page);
  await lab.execute(page, 'jupyter-dist:start-group');
  await page.waitForTimeout(1000);
  await shoot(page, 'start-form', page.locator('.jpd-Sidebar'));
  await page.getByText('More options', { exact: true }).click();
  await page.getByLabel('Saves kept').fill('0'); // what is set stays unfolded when the theme changes
  await look(page, 'more-options', page.locator('.jpd-StartForm'));
  await page.keyboard.press('Escape');
  await page.evaluate(() => {
    void window.jupyterapp.commands.execute('jupyter-dist:open-log', { group: 'train', rank: 1 });
  });
  await page.waitForTimeout(1500);
  await look(page, 'rank-output');
});

test('variables', async ({ page, request }) => {
  await lab.startGroup(request, 4);
  await page.setViewportSize({ width: 1100, height: 900 });
  await openPictured(page, 'model.ipynb', [MODEL]);
  await runCell(page, 0, 'ok');
  await lab.execute(page, 'jupyter-dist:open-variables');
  const panel = page.locator('.jpd-Variables');
  await panel.getByRole('button', { name: 'Compare model between ranks' }).click();
  await expect(panel.getByRole('table', { name: 'Parts of model that differ' })).toBeVisible();
  await shoot(page, 'variables', panel);
});

test('timeline', async ({ page, request }) => {
  await lab.startGroup(request, 8);
  await page.setViewportSize({ width: 1400, height: 900 });
  await openPictured(page, 'timeline.ipynb', TIMELINE);
  await lab.execute(page, 'jupyter-dist:open-timeline');
  for (const [index, end] of ['ok', 'error', 'ok', 'running'].entries()) {
    await runCell(page, index, end);
  }
  const panel = page.locator('.jpd-Timeline');
  await expect(panel.locator('tr[data-rank="3"]')).toContainText('all_reduce', { timeout: 30000 });
  await page.waitForTimeout(8000); // two more looks
  await shoot(page, 'timeline', panel);
});

test('figures of eight ranks', async ({ page, request }) => {
  await lab.startGroup(request, 8);
  await page.setViewportSize({ width: 1280, height: 900 });
  await openPictured(page, 'figures.ipynb', [
    'import matplotlib.pyplot as plt\n\nplt.figure(figsize=(5, 3))\nplt.plot([(step - 4 * rank) ** 2 for step in range(40)])\nplt.title(f"rank {rank}")\nplt.show()'
  ]);
  const cell = await runCell(page, 0, 'ok');
  await expect(cell.node.locator('img')).toHaveCount(8);
  await shoot(page, 'figures', cell.node);
});

test('memory', async ({ page, request }) => {
  await lab.startGroup(request, 2);
  await page.setViewportSize({ width: 1100, height: 900 });
  await openPictured(page, 'memory.ipynb', [TRAINED, 'torch.ones(1024, 1024)', SHORT]);
  for (const [index, state] of ['ok', 'ok', 'error'].entries()) {
    await runCell(page, index, state);
  }
  const { node } = lab.cell(page, 2);
  await expect(node).toContainText('To free memory:');
  await shoot(page, 'out-of-memory', node);
  await lab.execute(page, 'jupyter-dist:open-variables');
  const panel = page.locator('.jpd-Variables');
  await panel.getByRole('button', { name: 'Bytes' }).click();
  await shoot(page, 'memory', panel);
});

const WRONG = `from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

model = DDP(torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
data = torch.randn(512, 64, generator=torch.Generator().manual_seed(0))
for step, x in enumerate(DataLoader(data, batch_size=32)):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        print(f"step {step}  loss {loss.item():.4f}")`;

test('catch up: the dialog, and the header of a cell', async ({ page, request }) => {
  await lab.startGroup(request, 4);
  await page.setViewportSize({ width: 1100, height: 900 });
  await openPictured(page, 'catch-up.ipynb', [
    'torch.manual_seed(0)\nmodel = torch.nn.Linear(64, 10)\noptimizer = torch.optim.Adam(model.parameters(), lr=0.02)',
    'def schedule(step):\n    return 0.1 / (1 + step)'
  ]);
  await runCell(page, 0, 'ok');
  await runCell(page, 1, 'ok');
  const group = `/jupyter-dist/api/groups/${lab.GROUP}`;
  const state = async () => (await (await request.get(group)).json()).state;
  await request.post(`${group}/ranks/1/kill`, { data: {} });
  await expect.poll(state).toBe('degraded');
  await request.post(`${group}/replace`, { data: {} });
  await expect.poll(state).toBe('ready');
  await lab.cell(page, 0).node.getByRole('button', { name: 'Missed by rank 1' }).click();
  const dialog = page.locator('.jp-Dialog-content');
  await expect(dialog.getByRole('checkbox')).toHaveCount(2);
  await shoot(page, 'catch-up', dialog);
});

test('a profile, and a cell that cannot end', async ({ page, request }) => {
  await lab.startGroup(request, 4);
  await page.setViewportSize({ width: 1100, height: 900 });
  await openPictured(page, 'slow.ipynb', [PROFILED, SKIPPED]);
  const profiled = await runCell(page, 0, 'ok');
  await expect(profiled.node.getByRole('button', { name: 'Download trace' })).toBeVisible();
  await shoot(page, 'profile', profiled.node);
  const hung = lab.cell(page, 1);
  await hung.editor.click();
  await page.keyboard.press('Control+Enter');
  await expect(hung.node.locator('.jpd-Verdict').getByRole('alert')).toContainText('Cannot end', { timeout: 60000 });
  await hung.node.getByRole('button', { name: 'Stacks' }).click();
  await expect(hung.node.locator('.jpd-Stack')).toHaveCount(2);
  await shoot(page, 'hang', hung.node);
  await hung.node.getByRole('button', { name: 'Interrupt these ranks' }).click();
  await expect(hung.summary).toContainText('interrupted', { timeout: 60000 });
});

test('a cell whose training is wrong', async ({ page, request }) => {
  await lab.startGroup(request, 4);
  await page.setViewportSize({ width: 1100, height: 900 });
  await openPictured(page, 'wrong.ipynb', [WRONG]);
  const cell = await runCell(page, 0, 'ok');
  const line = cell.node.getByRole('group', { name: 'What is wrong with the training' });
  await expect(line).toContainText('got the same batch');
  await line.getByText('Evidence').click();
  await shoot(page, 'wrong', cell.node);
});

for (const ranks of [2, 8, 32]) {
  test(`a slow cell on ${ranks} ranks`, async ({ page, request }) => {
    await lab.startGroup(request, ranks);
    await page.setViewportSize({ width: 1100, height: 1100 });
    await openPictured(page, `tokenise${ranks}.ipynb`, [SLOW]);
    const slow = await runCell(page, 0, 'running');
    const line = slow.node.getByRole('group', { name: 'Why the cell is slow' });
    await expect(line).toContainText(`Rank ${ranks - 1} is last to the collectives`);
    await look(page, `slow-line-${ranks}`, slow.node);
    await line.getByRole('button', { name: 'Details' }).click();
    await expect(slow.node.getByRole('table', { name: 'Time by rank' })).toBeVisible();
    await expect(slow.node.locator('.jpd-Pace-trend')).toBeVisible();
    const take = ranks === 8 ? shoot : look;
    await take(page, ranks === 8 ? 'slow' : `slow-${ranks}`, slow.ranks);
    await lab.execute(page, 'jupyter-dist:open-timeline');
    await expect(page.locator('.jpd-Timeline-steps')).toBeVisible();
    await look(page, `slow-timeline-${ranks}`);
  });
}

test('start in one click: the launcher, and a cell whose group is not running', async ({ page }) => {
  await page.goto('/lab?reset');
  const tile = page.locator('.jp-LauncherCard').filter({ hasText: /Notebook on \d+ ranks/ });
  await expect(tile).toBeVisible({ timeout: 60000 });
  await shoot(page, 'launcher', page.locator('.jp-Launcher-section').filter({ has: tile }));
  const start = { num_ranks: 8, environment: 'torch', env: { NCCL_DEBUG: 'INFO' } };
  lab.writeNotebook('missing.ipynb', ['x = torch.ones(3, device=device) * rank', 'print(x)'], {
    jupyter_dist: { group: 'train', ranks: 'all', start },
    ...PYTHON
  });
  await page.goto('/lab/tree/missing.ipynb?reset');
  await expect(lab.picker(page)).toBeVisible({ timeout: 60000 });
  const cell = lab.cell(page, 1);
  await cell.editor.click();
  await page.keyboard.press('Control+Enter');
  await expect(cell.node.getByRole('group', { name: 'Start the group of this cell' })).toBeVisible();
  await shoot(page, 'missing', cell.node);
});
