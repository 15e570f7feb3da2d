import type { JupyterFrontEnd } from '@jupyterlab/application';
import { CommandRegistry } from '@lumino/commands';
import { expect, it } from 'vitest';
import { CommandIDs, IDistGroups, IDistStarter } from '../../tokens';
import { newNotebookPlugin } from './startgroups';

interface IContent {
  content: { cells: { id: string }[] };
}

it('gives the cell of each new notebook an id of its own', async () => {
  const saved: IContent[] = [];
  const commands = new CommandRegistry();
  const panel = { revealed: Promise.resolve(), content: {} };
  commands.addCommand('docmanager:open', { describedBy: {}, execute: () => panel });
  const contents = {
    // The last one was renamed.
    newUntitled: async () => ({ path: 'Untitled.ipynb' }),
    localPath: (path: string) => path,
    save: async (_: string, content: IContent) => saved.push(content)
  };
  const app = { commands, serviceManager: { contents } } as unknown as JupyterFrontEnd;
  const starter = {
    fitting: 2,
    sizes: [2],
    machine: Promise.resolve(),
    start: async () => ({})
  } as unknown as IDistStarter;
  void newNotebookPlugin.activate(app, starter, { groups: [] } as unknown as IDistGroups, null, null, null);
  await commands.execute(CommandIDs.newNotebook, { ranks: 2 });
  await commands.execute(CommandIDs.newNotebook, { ranks: 2 });
  const ids = saved.map(({ content }) => content.cells[0].id);
  expect(ids).toHaveLength(2);
  expect(new Set(ids).size).toBe(2);
  // As nbformat has them.
  expect(ids.every(id => /^[a-zA-Z0-9-_]{1,64}$/.test(id))).toBe(true);
});
