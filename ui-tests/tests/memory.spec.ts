/** Where the memory of ranks goes: in the panel of variables, at a cell's time, and when there is none left. */
import { expect, test } from './fixtures';
import * as lab from './lab';
import { command, run } from './ranks';

const TRAINED = `
whole = torch.zeros(1024, 1024)
part = whole[:10]
net = torch.nn.Linear(1024, 1024, bias=False)
adam = torch.optim.Adam(net.parameters())
net(torch.ones(1, 1024)).sum().backward()
adam.step()`;

const SHORT = `
def step():
    work = torch.zeros(1024, 1024)
    return torch.ones(1 << 46)
step()`;

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

test('views count once, and what results and tracebacks hold is named with what frees it', async ({
  page,
  request
}) => {
  await run(request, lab.GROUP, TRAINED, { wait: true });
  lab.writeNotebook('memory.ipynb', ['torch.ones(8 << 20, dtype=torch.int32)', SHORT]);
  await lab.openNotebook(page, 'memory.ipynb');

  // At the time of a cell: what it took, and did not give back.
  await lab.runCell(page, 0);
  const { summary, tab } = lab.cell(page, 0);
  await expect(summary).toContainText('ok');
  await expect(summary).toHaveAttribute('title', /^Memory: \+3\d\.\d MB not given back.* on ranks? [01]/);
  await expect(tab('Rank 1')).toHaveAttribute('title', /\nMemory: \+3\d\.\d MB not given back/);

  await lab.runCell(page, 1);
  const { node } = lab.cell(page, 1);
  await expect(node).toContainText('Out of memory: 256 TiB more were asked for.');
  await expect(node).toContainText('work in step()');
  await expect(node).toContainText('adam.zero_grad()  (4.00 MiB of gradients)');
  await expect(node).toContainText(/%reset -f out {2}\(32.0 MiB of results that Out keeps\)/);

  await command(page, 'jupyter-dist:open-variables', { group: lab.GROUP });
  const panel = page.locator('.jpd-Variables');
  const bytes = (name: string) => panel.locator(`tbody[data-name="${name}"] [data-column="bytes"]`);
  await expect(bytes('part')).toHaveText('4.00 MBshared with whole');
  await expect(bytes('adam')).toHaveText(
    '16.0 MBparameters 4.00 MB, gradients 4.00 MB, state 8.00 MB; shared with net'
  );
  const memory = panel.getByRole('list', { name: 'Memory' });
  await expect(memory).toContainText('Memory of ranks 0-1: 56.0 MB held on each');
  await expect(memory).toContainText(
    /Beside variables: Out\[\d+\] 32.0 MB, work in step\(\) 4.00 MB\. %reset -f out frees results\./
  );

  await run(request, lab.GROUP, 'del whole, part\n%reset -f out', { wait: true });
  await expect(memory).toContainText('Memory of ranks 0-1: 20.0 MB held on each');
  await expect(memory).not.toContainText('Out[');
});
