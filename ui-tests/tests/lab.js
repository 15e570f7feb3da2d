// What the tests share: notebooks as files, a group of ranks, the page.
const { expect } = require('@playwright/test');
const fs = require('fs');
const path = require('path');

const GROUP = 'train';

/** A file in the server's folder. */
function rootPath(name) {
  return path.join(process.env.JUPYTERLAB_GALATA_ROOT_DIR, name);
}

/** Write a notebook; a cell is its source or a whole cell. */
function writeNotebook(name, cells, metadata = onRanks()) {
  const notebook = {
    nbformat: 4,
    nbformat_minor: 5,
    metadata,
    cells: cells.map((cell, i) => ({
      id: `cell-${i}`,
      cell_type: 'code',
      metadata: {},
      outputs: [],
      execution_count: null,
      ...(typeof cell === 'string' ? { source: cell } : cell)
    }))
  };
  fs.writeFileSync(rootPath(name), JSON.stringify(notebook));
}

function readNotebook(name) {
  return JSON.parse(fs.readFileSync(rootPath(name), 'utf8'));
}

function onRanks(ranks = 'all', group = GROUP) {
  return { jupyter_dist: { group, ranks } };
}

/** Open a notebook without a kernel. */
async function openNotebook(page, name, { kernel = null } = {}) {
  await page.goto(`/lab/tree/${name}?reset`);
  const dialog = page.getByRole('dialog').filter({ hasText: 'Select Kernel' });
  await dialog.locator('select').selectOption({ label: kernel ?? 'No Kernel' });
  await dialog.locator('.jp-mod-accept').click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByLabel('Run cells on')).toBeVisible();
}

/** Run a command of JupyterLab; does not wait for its end. */
async function execute(page, command) {
  await page.evaluate(id => {
    void window.jupyterapp.commands.execute(id);
  }, command);
}

async function saveNotebook(page) {
  await page.evaluate(async () => {
    await window.jupyterapp.commands.execute('docmanager:save');
  });
}

function cell(page, index) {
  const node = page.locator('.jp-Notebook .jp-CodeCell').nth(index);
  return {
    node,
    editor: node.locator('.jp-InputArea-editor'),
    prompt: node.locator('.jp-InputPrompt'),
    ranks: node.locator('.jpd-Ranks'),
    summary: node.locator('.jpd-Ranks-summary'),
    items: node.locator('.jpd-RankItems:not(.lm-mod-hidden) .jpd-RankItem'),
    tab: name => node.getByRole('tab', { name })
  };
}

/** The text of the stream items in sight, as written. */
async function shownText({ node }) {
  const texts = await node
    .locator('.jpd-RankItems:not(.lm-mod-hidden) pre')
    .evaluateAll(nodes => nodes.map(pre => pre.textContent));
  return texts.join('');
}

/** Start the group of these tests. */
async function startGroup(request, numRanks = 2) {
  const answer = await request.post('/jupyter-dist/api/groups', {
    data: { name: GROUP, num_ranks: numRanks, accelerator: 'cpu' }
  });
  expect(answer.status(), await answer.text()).toBe(201);
  await expect
    .poll(async () => {
      const url = `/jupyter-dist/api/groups/${GROUP}`;
      return (await (await request.get(url)).json()).state;
    }, { timeout: 50000 })
    .toBe('ready');
}

async function shutdownGroup(request) {
  await request.delete(`/jupyter-dist/api/groups/${GROUP}`);
}

module.exports = {
  GROUP,
  cell,
  execute,
  onRanks,
  openNotebook,
  readNotebook,
  rootPath,
  saveNotebook,
  shownText,
  shutdownGroup,
  startGroup,
  writeNotebook
};
