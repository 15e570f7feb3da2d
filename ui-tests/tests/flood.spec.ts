import { APIRequestContext, Page } from '@playwright/test';
import { createHash } from 'crypto';
import * as fs from 'fs';
import { expect, test } from './fixtures';
import * as lab from './lab';
import { address } from './ranks';

// What a reload opens is what the page had open when it last saved that.
test.use({ ownPage: true });

test.beforeAll(({ request }) => lab.startGroup(request));
test.afterAll(({ request }) => lab.shutdownGroup(request));

/** Each loads JupyterLab, which is nearly all that this test costs; RELOADS=20 is the long variant. */
const RELOADS = Number(process.env.RELOADS ?? 8);
/** What a view shows of a rank whose text is longer: docs/api.md. */
const HEAD_LINES = 2000;
const TAIL_LINES = 200;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** What the journal has of a rank, without the lines that say which cell it was. */
async function journal(request: APIRequestContext, rank: number): Promise<string> {
  const url = `/jupyter-dist/api/groups/${lab.GROUP}/ranks/${rank}/log/download`;
  const text = await (await request.get(url)).text();
  return text.replace(/^#.*\n/gm, '').replace(/^\n/, '');
}

/** The text of a rank's tab, and how many lines the button in its middle stands for. */
async function shown(page: Page, rank: number): Promise<{ pieces: string[]; elided: number }> {
  const cell = lab.cell(page, 0);
  await cell.tab(`Rank ${rank}, ok`).click();
  await expect(cell.tab(`Rank ${rank}, ok`)).toHaveAttribute('aria-selected', 'true');
  // Thousands of rows come in several frames.
  await expect(cell.items.last()).toContainText(`rank ${rank} says the last`);
  const rows = await cell.items.evaluateAll(nodes =>
    nodes.map(node => ({
      text: node.querySelector('pre')?.textContent ?? '',
      more: node.querySelector('button')?.textContent ?? ''
    }))
  );
  const pieces = [''];
  let elided = 0;
  for (const { text, more } of rows) {
    if (more) {
      elided += Number(/[\d,]+/.exec(more)![0].replaceAll(',', ''));
      pieces.push('');
    } else {
      pieces[pieces.length - 1] += text;
    }
  }
  return { pieces, elided };
}

test('reloads in a flood: each rank as in the journal, hash by hash', async ({ page, request }) => {
  test.setTimeout(900000);
  const stop = lab.newPath('stop');
  // Rank 0 floods; rank 1 says no more than a page shows, so that all of it can be compared.
  const code = [
    'import os, time',
    `stop = ${JSON.stringify(stop)}`,
    'i = 0',
    'if rank == 0:',
    '    while not os.path.exists(stop):',
    '        for i in range(i, i + 100):',
    '            print(f"line {i} of the flood, \\x1b[3{i % 8}mcoloured\\x1b[0m {i * 7919 % 10007}")',
    '        i += 1',
    '        time.sleep(0.01)',
    'else:',
    '    while not os.path.exists(stop) and i < 1900:',
    '        print(f"line {i}", end=" \\u00b7 \\U0001f600\\n" if i % 3 else "\\n")',
    '        i += 1',
    '        time.sleep(0.02)',
    'print(f"rank {rank} says the last")'
  ].join('\n');
  lab.writeNotebook('flooded.ipynb', [code], {
    ...lab.onRanks(),
    language_info: { name: 'python' }
  });
  await page.goto(`${address(page)}/tree/flooded.ipynb?reset`);
  const cell = lab.cell(page, 0);
  await lab.runCell(page, cell);
  await expect(cell.items.first()).toContainText('line 0');
  await lab.saveNotebook(page);
  page.on('dialog', dialog => void dialog.accept());
  for (let i = 0; i < RELOADS; i++) {
    await page.reload();
    // Some at once, some when the page has begun to follow again.
    if (i % 2) {
      await expect(cell.summary).toContainText('running');
      await expect(cell.items.first()).toContainText('line 0');
    }
  }
  await expect(cell.summary).toContainText('running');
  fs.writeFileSync(stop, '');
  await expect(cell.summary).toContainText('2 ranks \u00b7 ok');

  const quiet = await shown(page, 1);
  const whole = await journal(request, 1);
  expect(quiet.elided).toBe(0);
  expect(sha256(quiet.pieces.join(''))).toBe(sha256(whole));

  const { pieces, elided } = await shown(page, 0);
  const kept = await journal(request, 0);
  const plain = kept.replace(/\x1b\[\d+m/g, ''); // eslint-disable-line no-control-regex
  const lines = plain.split('\n').slice(0, -1);
  expect(lines.length).toBeGreaterThan(5 * (HEAD_LINES + TAIL_LINES));
  expect(elided).toBe(lines.length - HEAD_LINES - TAIL_LINES);
  const ends = [lines.slice(0, HEAD_LINES), lines.slice(-TAIL_LINES)];
  expect(pieces.map(sha256)).toEqual(ends.map(end => sha256(`${end.join('\n')}\n`)));

  // And the journal is what the rank wrote.
  const written = [...Array(lines.length - 1).keys()].map(
    i => `line ${i} of the flood, \x1b[3${i % 8}mcoloured\x1b[0m ${(i * 7919) % 10007}\n`
  );
  expect(sha256(kept)).toBe(sha256(`${written.join('')}rank 0 says the last\n`));
});
