import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ILogLimits } from './model/log';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistExecutions, IDistGroups, IDistService } from '../../tokens';
import type { LogMainArea } from './mainarea';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../../plugins/commands/groupchoice';
import { addPanel } from '../../plugins/panels/openpanel';

const ID = 'jupyter-dist:logpanel';

/** The rank output panel. */
const logPanelPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'The rank output panel: the full log of each rank across cells.',
  autoStart: true,
  requires: [IDistService, IDistExecutions, IDistGroups, IRenderMimeRegistry],
  optional: [INotebookTracker, ILayoutRestorer, ISettingRegistry, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    executions: IDistExecutions,
    groups: IDistGroups,
    rendermime: IRenderMimeRegistry,
    notebooks: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const tracker = new WidgetTracker<LogMainArea>({ namespace: 'jupyter-dist-log' });
    const choice = new GroupChoice(groups, notebooks, trans);
    const limits = readLimits(settings);
    const create = async (group: IGroup): Promise<LogMainArea> => {
      const panel = await loaded(import(/* webpackChunkName: "logpanel" */ './mainarea'));
      return new panel.LogMainArea({
        service,
        executions,
        groups,
        group,
        rendermime,
        trans,
        limits: await limits(panel.DEFAULT_LIMITS)
      });
    };
    app.commands.addCommand(CommandIDs.openLog, {
      label: trans.__('Show Rank Output'),
      describedBy: { args: ARGS },
      isEnabled: () => groups.groups.length > 0,
      execute: async ({ group, rank, restore }) => {
        await (restore ? groups.ready : undefined);
        const chosen = await choice.resolve(group, trans.__('Show Rank Output'));
        if (chosen) {
          await open(app, tracker, notebooks, chosen, rankOf(chosen, rank), create, restore === true).catch(
            notifyError
          );
        }
      }
    });
    palette?.addItem({ command: CommandIDs.openLog, category: trans.__('Ranks') });
    restore(restorer, tracker);
  }
};

/** The requested rank, if the group has it; a stored layout may contain anything. */
function rankOf(group: IGroup, rank: unknown): number | null {
  const isRank = Number.isInteger(rank) && (rank as number) >= 0 && (rank as number) < group.world_size;
  return isRank ? (rank as number) : null;
}

const ARGS = {
  type: 'object',
  properties: { group: { type: 'string' }, rank: { type: 'number' }, restore: { type: 'boolean' } }
} as const;

async function open(
  app: JupyterFrontEnd,
  tracker: WidgetTracker<LogMainArea>,
  notebooks: INotebookTracker | null,
  group: IGroup,
  rank: number | null,
  create: (group: IGroup) => Promise<LogMainArea>,
  isRestored: boolean
): Promise<void> {
  let panel = tracker.find(widget => widget.content.group === group.id);
  if (!panel) {
    const made = (panel = await create(group));
    made.content.currentChanged.connect(() => void tracker.save(made));
    made.content.rank = rank ?? 0;
    await addPanel(app, tracker, notebooks, made, isRestored);
  }
  if (rank !== null) {
    panel.content.rank = rank;
  }
  if (!isRestored) {
    app.shell.activateById(panel.id);
  }
}

function restore(restorer: ILayoutRestorer | null, tracker: WidgetTracker<LogMainArea>): void {
  void restorer?.restore(tracker, {
    command: CommandIDs.openLog,
    args: ({ content }) => ({ group: content.group, rank: content.rank, restore: true }),
    name: ({ content }) => content.group
  });
}

/** How much of a log a page keeps, read when a panel is created. */
function readLimits(registry: ISettingRegistry | null): (defaults: ILogLimits) => Promise<ILogLimits> {
  return async defaults => {
    try {
      const settings = await registry?.load(ID);
      const lines = bounded(settings?.composite.maxLines, 100000) ?? defaults.lines;
      const kilobytes = bounded(settings?.composite.maxKilobytes, 65536) ?? defaults.characters / 1024;
      return { lines, characters: kilobytes * 1024 };
    } catch {
      // Without its schema the extension still works, with the defaults.
      return defaults;
    }
  };
}

/** A positive number up to `max`; null for any other value of a setting. */
function bounded(value: unknown, max: number): number | null {
  const number = Number(value);
  return number > 0 ? Math.min(number, max) : null;
}

export default logPanelPlugin;
