import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IThemeManager } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { Contributions } from '../../model/contributions';
import { DevicesModel } from '../../model/groups/devicemonitor';
import { readWanted } from '../../model/groups/wanted';
import { GroupMonitors } from '../../model/groups/monitor';
import { CommandIDs, IDistGroups, IDistService, IDistSidebarSections, ISidebarSection } from '../../tokens';
import { ranksIcon } from '../../widgets/base/icons';
import type { IGroupActions } from '../../widgets/sidebar/context';
import { RanksSidebar } from '../../widgets/sidebar/sidebar';
import { openGroupMenu, repairsOf } from '../commands/groupmenu';
import { SECTION_RANK } from '../commands/launchersection';
import { keepRoom } from './sidebarroom';

const ID = 'jupyter-dist:sidebar';

/** The Ranks sidebar. */
export const sidebarPlugin: JupyterFrontEndPlugin<IDistSidebarSections> = {
  id: ID,
  description: 'The Ranks sidebar: devices, groups, ranks, and the form to start a group.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  provides: IDistSidebarSections,
  optional: [
    INotebookTracker,
    ILayoutRestorer,
    ISettingRegistry,
    IThemeManager,
    ICommandPalette,
    ILauncher,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    tracker: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    settings: ISettingRegistry | null,
    themes: IThemeManager | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    translator: ITranslator | null
  ): IDistSidebarSections => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const sections = new Contributions<ISidebarSection>();
    const { clock } = groups;
    const sidebar: RanksSidebar = new RanksSidebar({
      service,
      groups,
      devices: new DevicesModel(service),
      monitors: new GroupMonitors(service, clock),
      clock,
      sections,
      actions: actionsByCommands(app, trans),
      trans,
      themeChanged: themes?.themeChanged ?? null,
      notebook: () => sidebar.notebook ?? tracker?.currentWidget?.context.path ?? null
    });
    app.shell.add(sidebar, 'right', { rank: 350, type: 'Ranks' });
    restorer?.add(sidebar, sidebar.id);
    keepRoom(app.shell, sidebar);
    returnOnEscape(sidebar.node, tracker);
    addCommands(app, sidebar, trans, palette, launcher);
    void followSettings(sidebar, settings);
    return sections;
  }
};

const START_ARGS = {
  type: 'object',
  properties: {
    notebook: { type: 'string' },
    wanted: { type: 'object' },
    isPalette: { type: 'boolean' },
    keepsFocus: { type: 'boolean' }
  }
} as const;

/** The actions of the buttons: run the commands. */
function actionsByCommands(app: JupyterFrontEnd, trans: TranslationBundle): IGroupActions {
  const { commands } = app;
  const run = (id: string, args: Record<string, string | number>) => void commands.execute(id, args);
  return {
    interrupt: (group, ranks = 'all') => run(CommandIDs.interrupt, { group: group.id, ranks }),
    restart: group => run(CommandIDs.restart, { group: group.id }),
    replace: group => run(CommandIDs.replace, { group: group.id }),
    repairs: group =>
      repairsOf(group).map(({ command, brief, title, args, standsAlone }) => ({
        label: typeof brief === 'string' ? brief : brief(group),
        title: title?.(group) ?? commands.caption(command),
        standsAlone: standsAlone === true,
        run: () => run(command, { group: group.id, ...args?.(group) })
      })),
    kill: (group, rank) => run(CommandIDs.killRank, { group: group.id, rank }),
    reform: group => run(CommandIDs.reform, { group: group.id }),
    startAgain: group => run(CommandIDs.startAgain, { group: group.id }),
    openLog: (group, rank) => run(CommandIDs.openLog, { group: group.id, rank }),
    openMenu: (group, button) => openGroupMenu(app, group, button, trans)
  };
}

function addCommands(
  app: JupyterFrontEnd,
  sidebar: RanksSidebar,
  trans: TranslationBundle,
  palette: ICommandPalette | null,
  launcher: ILauncher | null
): void {
  const category = trans.__('Ranks');
  const describedBy = { args: { type: 'object', properties: {} } } as const;
  app.commands.addCommand(CommandIDs.showSidebar, {
    label: trans.__('Show Ranks'),
    describedBy,
    execute: () => {
      app.shell.activateById(sidebar.id);
      sidebar.focus();
    }
  });
  app.commands.addCommand(CommandIDs.startGroup, {
    label: trans.__('Start a Group of Ranks\u2026'),
    caption: trans.__('Start a group of torch.distributed ranks that runs notebook cells'),
    icon: args => (args.isPalette ? undefined : ranksIcon),
    describedBy: { args: START_ARGS },
    execute: args => {
      const from = args.keepsFocus ? null : document.activeElement;
      app.shell.activateById(sidebar.id);
      const notebook = typeof args.notebook === 'string' ? args.notebook : null;
      const { name, ...wanted } = (args.wanted ?? {}) as { name?: unknown };
      const filled = typeof name === 'string' ? { name, ...readWanted(wanted).wanted } : null;
      const closed = sidebar.openForm(notebook, filled, from);
      // The launcher ignores clicks while its command is running.
      return notebook === null ? undefined : closed;
    }
  });
  palette?.addItem({ command: CommandIDs.showSidebar, category });
  palette?.addItem({ command: CommandIDs.startGroup, category, args: { isPalette: true } });
  launcher?.add({ command: CommandIDs.startGroup, category, categoryRank: SECTION_RANK, rank: 30 });
}

async function followSettings(sidebar: RanksSidebar, registry: ISettingRegistry | null): Promise<void> {
  try {
    const settings = await registry?.load(ID);
    const read = () => {
      const { warm, ranks, charts } = settings!.composite;
      sidebar.options = { warm: warm !== false, ranks: Number(ranks) || 2, charts: charts !== false };
    };
    if (settings) {
      settings.changed.connect(read, sidebar);
      read();
    }
  } catch (reason) {
    console.warn('jupyter_dist: could not read the sidebar settings', reason);
  }
}

/** Elements in which Escape has another meaning: fields are cleared, forms and menus closed. */
const OWN_ESCAPE = 'input, select, textarea, form, [role="dialog"], [role="menu"]';

/** Have Escape go back to the notebook. */
function returnOnEscape(panel: HTMLElement, notebooks: INotebookTracker | null): void {
  panel.addEventListener('keydown', event => {
    if (event.key === 'Escape' && !event.defaultPrevented && !(event.target as Element).closest(OWN_ESCAPE)) {
      notebooks?.currentWidget?.activate();
    }
  });
}
