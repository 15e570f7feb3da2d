/** Groups that outlive what they hold: parking and resuming from the page. */
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, openLab, run } from './ranks';

const EXECUTIONS = `/jupyter-dist/api/groups/${lab.GROUP}/executions`;

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('a group on CPU is parked in files after a question, and resumed by its button, twice', async ({
  page,
  request
}) => {
  await run(
    request,
    lab.GROUP,
    'big = torch.ones(1024, 1024) * (rank + 1)\npart = big[:2]\nimport numpy\nshared = torch.from_numpy(numpy.ones(131072))',
    { wait: true }
  );
  await openLab(page);
  await command(page, 'jupyter-dist:show-sidebar');
  const card = page.getByRole('region', { name: `Group ${lab.GROUP}` });
  const resume = card.getByRole('button', { name: 'Resume', exact: true });
  for (let time = 0; time < 2; time++) {
    await expect(card).toHaveAttribute('data-state', 'ready');
    await expect(resume).toHaveCount(0);
    await command(page, 'jupyter-dist:park', { group: lab.GROUP });
    const dialog = page.getByRole('dialog');
    await expect(dialog).toContainText('Its ranks hold no devices.');
    await dialog.getByRole('button', { name: 'Park in Files' }).click();
    await expect(card.locator('.jpd-Group-summary')).toHaveText('2 ranks, parked, 8.00 MB in files');
    await expect(card.getByText('1 MiB stay where they are')).toHaveCount(1);
    await resume.focus();
    await page.keyboard.press('Enter');
  }
  await expect(card).toHaveAttribute('data-state', 'ready');
  const code = 'part.zero_()\nassert big.sum().item() == 1022 * 1024 * (rank + 1)';
  const { id } = await (await request.post(EXECUTIONS, { data: { code } })).json();
  const view = await (await request.get(`${EXECUTIONS}/${id}?wait=30`)).json();
  expect(view.execution.state).toBe('ok');
});
