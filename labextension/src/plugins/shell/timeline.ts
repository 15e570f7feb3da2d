import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded } from '../../services/errors';
import type { IExecution, IGroup } from '../../services/protocol';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import type { TimelinePanel } from '../../widgets/timeline/panel';
import { notifyError } from '../../widgets/errornote';
import { GroupChoice } from '../commands/groupchoice';
import { showCell } from '../notebook/showcell';
import { addPanel } from './grouppanel';

const ARGS = { type: 'object', properties: { group: { type: 'string' }, restore: { type: 'boolean' } } } as const;

/** The panel with the timeline of ranks. */
export const timelinePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:timeline',
  description: 'What ranks did and used in the last hour.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  optional: [INotebookTracker, ILayoutRestorer, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    notebooks: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const tracker = new WidgetTracker<TimelinePanel>({ namespace: 'jupyter-dist-timeline' });
    const choice = new GroupChoice(groups, notebooks, trans);
    const command = CommandIDs.openTimeline;
    const label = trans.__('Show Timeline of Ranks');
    const create = async (group: IGroup): Promise<TimelinePanel> => {
      const part = await loaded(import(/* webpackChunkName: "timeline" */ '../../widgets/timeline/panel'));
      const openLog = (rank: number): void => void app.commands.execute(CommandIDs.openLog, { group: group.id, rank });
      const openCell = async (rank: number, execution: IExecution): Promise<void> => {
        // Code that is in no notebook is in the log.
        if (!(await showCell(app, notebooks, execution).catch(() => false))) {
          openLog(rank);
        }
      };
      return new part.TimelinePanel({ service, groups, group, trans, openLog, openCell: (...which) => void openCell(...which) });
    };
    const open = async (reference: unknown, isRestored: boolean): Promise<void> => {
      const group = await choice.resolve(reference, label);
      if (!group) {
        return;
      }
      let panel = tracker.find(one => one.group === group.id);
      if (!panel) {
        panel = await create(group);
        await addPanel(app, tracker, notebooks, panel, isRestored);
      }
      if (!isRestored) {
        app.shell.activateById(panel.id);
      }
    };
    app.commands.addCommand(command, {
      label,
      describedBy: { args: ARGS },
      isEnabled: () => groups.groups.length > 0,
      execute: async ({ group, restore }) => {
        await (restore ? groups.ready : undefined);
        await open(group, restore === true).catch(notifyError);
      }
    });
    palette?.addItem({ command, category: trans.__('Ranks') });
    void restorer?.restore(tracker, { command, args: ({ group }) => ({ group, restore: true }), name: ({ group }) => group });
  }
};
