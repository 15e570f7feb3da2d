/** One section of the launcher for all that runs on ranks; JupyterLab has the kernel Ranks among its notebooks and consoles. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { consoleIcon, notebookIcon } from '@jupyterlab/ui-components';
import { guarded } from '../../model/contributions';
import { CommandIDs } from '../../tokens';

/** After JupyterLab's section of notebooks. */
export const SECTION_RANK = 10;

/** The name of our kernel. */
const KERNEL = 'ranks';

/** JupyterLab's commands behind the tiles of a kernel, ours in their place, and their order in the section. */
const TILES: Record<string, { command: string; rank: number }> = {
  'notebook:create-new': { command: CommandIDs.newKernelNotebook, rank: 10 },
  'console:create': { command: CommandIDs.newKernelConsole, rank: 20 }
};

export const launcherPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:launcher',
  description: 'Gathers what runs on ranks in one section of the launcher.',
  autoStart: true,
  requires: [ILauncher],
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, launcher: ILauncher, translator: ITranslator | null): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    addCommands(app, trans);
    // Another extension may have replaced JupyterLab's launcher.
    const model = launcher as Partial<ILauncher.IModel>;
    const gather = (): void =>
      guarded('the section of the launcher', () => moveTiles(model.items?.() ?? [], trans.__('Ranks')), undefined);
    model.stateChanged?.connect(gather, app);
    gather();
  }
};

/** An item of the launcher's model, which is its own copy. */
type Item = { -readonly [name in keyof ILauncher.IItemOptions]: ILauncher.IItemOptions[name] };

function moveTiles(items: Iterable<Item>, category: string): void {
  for (const item of items) {
    const tile = TILES[item.command];
    if (tile && kernelOf(item) === KERNEL) {
      Object.assign(item, { ...tile, category, categoryRank: SECTION_RANK });
    }
  }
}

function kernelOf({ args }: Item): unknown {
  const { kernelName, kernelPreference } = (args ?? {}) as {
    kernelName?: string;
    kernelPreference?: { name?: string };
  };
  return kernelName ?? kernelPreference?.name;
}

/** The same as JupyterLab's, with labels that differ in one section. */
function addCommands({ commands }: JupyterFrontEnd, trans: TranslationBundle): void {
  const labels = {
    [CommandIDs.newKernelNotebook]: trans.__('Notebook with the kernel Ranks'),
    [CommandIDs.newKernelConsole]: trans.__('Console with the kernel Ranks')
  };
  const icons = { [CommandIDs.newKernelNotebook]: notebookIcon, [CommandIDs.newKernelConsole]: consoleIcon };
  for (const [original, { command }] of Object.entries(TILES)) {
    const id = command as keyof typeof labels;
    commands.addCommand(id, {
      label: labels[id],
      caption: trans.__('Its cells run on ranks, also in other programs that open the notebook'),
      icon: icons[id],
      describedBy: { args: { type: 'object', properties: { cwd: { type: 'string' } } } },
      isVisible: () => commands.hasCommand(original),
      execute: args => commands.execute(original, args)
    });
  }
}
