// The moving picture of the README, as frames with the time of each; .ci/moving.py makes one file of them.
const fs = require('fs');
const path = require('path');
const { expect, test } = require('@playwright/test');
const lab = require('../tests/lab');
const { openPictured } = require('../tests/pictures');

const FRAMES = path.join(__dirname, '..', 'test-results', 'frames');
const EVERY_MS = 100;

const TRAIN = `torch.manual_seed(0)
model = torch.nn.Linear(64, 10)
for step in range(4):
    x = torch.randn(32, 64) * (10 if rank == 2 else 1)
    loss = model(x).square().mean()
    dist.all_reduce(loss.detach().clone())
    print(f"step {step}  loss {loss.item():.4f}")`;
const HANG = `if rank == 0:
    dist.barrier()`;
const DIE = `import os, signal
if rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)`;
const GOES_ON = `t = torch.ones(1)
dist.all_reduce(t)
print("ranks that answer:", int(t))`;

test.use({ viewport: { width: 960, height: 600 }, deviceScaleFactor: 1 });
test.afterEach(async ({ request }) => lab.shutdownGroup(request));

/** Take a picture every moment until it is told to stop. */
function film(page) {
  fs.rmSync(FRAMES, { recursive: true, force: true });
  fs.mkdirSync(FRAMES, { recursive: true });
  let isOver = false;
  const began = Date.now();
  const run = async () => {
    while (!isOver) {
      const at = Date.now();
      const name = `${String(at - began).padStart(8, '0')}.png`;
      await page.screenshot({ path: path.join(FRAMES, name), animations: 'disabled' });
      await page.waitForTimeout(Math.max(0, EVERY_MS - (Date.now() - at)));
    }
  };
  const running = run();
  return async () => {
    isOver = true;
    await running;
  };
}

test('numbers of four ranks, a hang that is freed, and a rank that is replaced', async ({ page, request }) => {
  await lab.startGroup(request, 4);
  await openPictured(page, 'moving.ipynb', [TRAIN, HANG, DIE, GOES_ON]);
  // Notifications lie over the cells, and are of other pictures.
  await page.addStyleTag({ content: '.Toastify { display: none !important; }' });
  const look = ms => page.waitForTimeout(ms);
  const run = async index => {
    const cell = lab.cell(page, index);
    await cell.editor.click();
    await page.keyboard.press('Control+Enter');
    return cell;
  };
  const stop = film(page);
  await look(800);
  const trained = await run(0);
  await expect(trained.summary).toContainText('ok');
  await expect(trained.items.first()).toContainText('step');
  await look(3500);
  const hung = await run(1);
  await expect(hung.node.locator('.jpd-Verdict').getByRole('alert')).toContainText('Cannot end', { timeout: 60000 });
  await look(3500);
  await hung.node.getByRole('button', { name: 'Interrupt these ranks' }).click();
  await expect(hung.summary).toContainText('interrupted', { timeout: 60000 });
  await look(1800);
  const dead = await run(2);
  const replace = dead.node.getByRole('button', { name: 'Replace' });
  await expect(replace).toBeVisible({ timeout: 60000 });
  await look(3000);
  await replace.click();
  const replacing = page.getByRole('dialog');
  await expect(replacing).toBeVisible();
  await look(2000);
  await replacing.getByRole('button', { name: 'Replace', exact: true }).click();
  await expect(trained.node.getByRole('button', { name: /^Missed by rank 2/ })).toBeVisible({ timeout: 60000 });
  const last = await run(3);
  await expect(last.items.first()).toContainText('4');
  await look(3000);
  await stop();
});
