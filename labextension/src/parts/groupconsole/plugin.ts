/** Consoles on ranks: opens them, gives them their keys, and brings them back after a reload. */
import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { consoleIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { UUID } from '@lumino/coreutils';
import { readWanted } from '../../model/groups/wanted';
import { getNotebookTarget, setNotebookTarget } from '../../model/targets/target';
import type { IRankTarget } from '../../model/targets/target';
import { loaded } from '../../services/errors';
import {
  CommandIDs,
  IDistExecutions,
  IDistGroups,
  IDistNotebooks,
  IDistService,
  IDistStarter,
  type IWantedGroup
} from '../../tokens';
import type { GroupConsole } from './console';
import { notifyError } from '../../widgets/base/errornote';
import { mayTakeFocus } from '../../widgets/base/focus';
import { GroupChoice } from '../../plugins/commands/groupchoice';
import { SelectionRunner } from './selection';

const consolePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:console',
  description: 'Code consoles whose cells run on ranks.',
  autoStart: true,
  requires: [
    IDistService,
    IDistGroups,
    IDistExecutions,
    IDistStarter,
    IDistNotebooks,
    IRenderMimeRegistry,
    IEditorServices
  ],
  optional: [INotebookTracker, ICompletionProviderManager, ILayoutRestorer, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    executions: IDistExecutions,
    starter: IDistStarter,
    notebooks: IDistNotebooks,
    rendermime: IRenderMimeRegistry,
    editors: IEditorServices,
    notebookTracker: INotebookTracker | null,
    completer: ICompletionProviderManager | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const tracker = new WidgetTracker<GroupConsole>({ namespace: 'jupyter-dist-console' });
    const choice = new GroupChoice(groups, notebookTracker, trans);
    const parts: ConsoleParts = {
      service,
      groups,
      executions,
      starter,
      notebooks,
      rendermime,
      editors,
      completer,
      trans
    };
    const make = (args: IOpened) => createConsole(parts, args);
    const consoles = new Consoles(app, tracker, choice, groups, starter, make, notebookTracker, trans);
    const category = trans.__('Ranks');
    const { commands } = app;
    commands.addCommand(CommandIDs.openConsole, {
      label: args => (args.isPalette ? trans.__('New Console on Ranks') : trans.__('New Console')),
      caption: trans.__('Open a code console whose cells run on ranks'),
      icon: args => (args.isPalette ? undefined : consoleIcon),
      describedBy: { args: OPEN_ARGS },
      isEnabled: args => groups.groups.length > 0 || typeof args.path === 'string',
      execute: args => consoles.open(args).catch(notifyError)
    });
    palette?.addItem({ command: CommandIDs.openConsole, args: { isPalette: true }, category });
    addKeyCommands(commands, tracker, completer, trans);
    palette?.addItem({ command: CommandIDs.interruptConsole, category });
    const runner = new SelectionRunner(app, tracker, notebookTracker, choice, groups, trans);
    for (const command of [CommandIDs.runSelection, CommandIDs.runSelectionOn] as const) {
      commands.addCommand(command, runner.options(command));
      palette?.addItem({ command, args: { isPalette: true }, category });
    }
    groups.changed.connect(() => commands.notifyCommandChanged(CommandIDs.openConsole), app);
    void restorer?.restore(tracker, {
      command: CommandIDs.openConsole,
      args: ({ path, target, wanted }) => ({ path, ...target.target, wanted: wanted as never, isRestored: true }),
      name: ({ path }) => path
    });
  }
};

const OPEN_ARGS = {
  type: 'object',
  properties: {
    group: { type: 'string' },
    ranks: { type: 'string' },
    path: { type: 'string' },
    wanted: { type: 'object' },
    isRestored: { type: 'boolean' },
    isPalette: { type: 'boolean' },
    activate: { type: 'boolean' }
  }
} as const;

/** What a console is opened with. */
interface IOpened {
  path: string;
  isRestored: boolean;
  target: IRankTarget;
  wanted: IWantedGroup;
  startAgain(name: string, wanted: IWantedGroup): void;
}

type ConsoleParts = Omit<ConstructorParameters<typeof GroupConsole>[0], keyof IOpened>;

async function createConsole(parts: ConsoleParts, opened: IOpened): Promise<GroupConsole> {
  const module = await loaded(import(/* webpackChunkName: "console" */ './console'));
  return new module.GroupConsole({ ...parts, ...opened });
}

/** Opens new consoles, and the consoles of the stored layout. */
class Consoles {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _tracker: WidgetTracker<GroupConsole>,
    private readonly _choice: GroupChoice,
    private readonly _groups: IDistGroups,
    private readonly _starter: IDistStarter,
    private readonly _make: (opened: IOpened) => Promise<GroupConsole>,
    private readonly _notebooks: INotebookTracker | null,
    private readonly _trans: TranslationBundle
  ) {}

  async open(args: Record<string, unknown>): Promise<GroupConsole | undefined> {
    const isRestored = args.isRestored === true && typeof args.path === 'string';
    const opened = isRestored ? restored(args) : await this._chosen(args);
    if (!opened) {
      return undefined;
    }
    const panel = await this._make({
      ...opened,
      isRestored,
      startAgain: (name, wanted) => void this._startAgain(opened.path, name, wanted)
    });
    panel.target.changed.connect(() => void this._tracker.save(panel));
    await this._tracker.add(panel);
    const beside = this._notebooks?.currentWidget;
    const below = beside?.isVisible ? ({ mode: 'split-bottom', ref: beside.id } as const) : {};
    const activate = args.activate !== false && !isRestored;
    this._app.shell.add(panel, 'main', { ...(isRestored ? {} : below), activate });
    return panel;
  }

  /** A new console: of the group that was asked for, on the ranks that the notebook has chosen. */
  private async _chosen(args: Record<string, unknown>): Promise<Pick<IOpened, 'path' | 'target' | 'wanted'> | null> {
    const group = await this._choice.resolve(args.group, this._trans.__('New Console on Ranks'));
    if (!group) {
      return null;
    }
    const model = this._notebooks?.currentWidget?.content.model;
    const common = model ? getNotebookTarget(model) : null;
    const own = common && this._groups.find(common.group)?.id === group.id ? common.ranks : 'all';
    const ranks = typeof args.ranks === 'string' ? args.ranks : own;
    // The last part is what others see while its cell runs.
    const path = `console:${UUID.uuid4().slice(0, 8)}/${this._trans.__('console of %1', group.name)}`;
    return { path, target: { group: group.name, ranks }, wanted: this._starter.describe(group) };
  }

  private async _startAgain(path: string, name: string, wanted: IWantedGroup): Promise<void> {
    try {
      const group = await this._starter.start(name, wanted, '');
      const panel = this._tracker.find(one => one.path === path);
      if (panel) {
        setNotebookTarget(
          panel.target.notebook,
          { group: group.name, ranks: panel.target.target?.ranks ?? 'all' },
          wanted
        );
        if (mayTakeFocus(panel.node)) {
          this._app.shell.activateById(panel.id);
        }
      }
    } catch (reason) {
      notifyError(reason);
    }
  }
}

/** A stored layout may contain anything. */
function restored(args: Record<string, unknown>): Pick<IOpened, 'path' | 'target' | 'wanted'> {
  const text = (value: unknown, otherwise: string): string => (typeof value === 'string' ? value : otherwise);
  const target = { group: text(args.group, ''), ranks: text(args.ranks, 'all') };
  return { path: text(args.path, ''), target, wanted: readWanted(args.wanted).wanted };
}

/** The commands of a console's keys, which the schema has. */
function addKeyCommands(
  commands: CommandRegistry,
  tracker: WidgetTracker<GroupConsole>,
  completer: ICompletionProviderManager | null,
  trans: TranslationBundle
): void {
  const add = (id: string, label: string, execute: (panel: GroupConsole) => unknown): void => {
    commands.addCommand(id, {
      label,
      describedBy: { args: { type: 'object', properties: {} } },
      isEnabled: () => tracker.currentWidget !== null,
      execute: () => tracker.currentWidget && execute(tracker.currentWidget)
    });
  };
  add(CommandIDs.runConsole, trans.__('Run Cell of the Console on Ranks'), ({ content }) => content.execute(true));
  add(CommandIDs.interruptConsole, trans.__('Interrupt the Console on Ranks'), panel =>
    panel.interrupt().catch(notifyError)
  );
  add(CommandIDs.completeConsole, trans.__('Complete in the Console on Ranks'), ({ id }) => completer?.invoke(id));
  add(CommandIDs.selectCompletion, trans.__('Accept the Completion in the Console on Ranks'), ({ id }) =>
    completer?.select(id)
  );
}

export default consolePlugin;
