import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { loaded } from '../../services/errors';
import type { IExecution, IGroup } from '../../services/protocol';
import { CommandIDs, IDistGroups, IDistService, IDistStepTimes } from '../../tokens';
import type { TimelinePanel } from './timelinepanel';
import { showCell } from '../../plugins/notebook/showcell';
import { addPanelCommand } from '../../plugins/panels/openpanel';

/** Open the timeline of ranks; args: `{group: id or name}`. */
const OPEN = 'jupyter-dist:open-timeline';

/** The panel with the timeline of ranks. */
const timelinePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:timeline',
  description: 'What ranks did and used in the last hour.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  optional: [INotebookTracker, ILayoutRestorer, ICommandPalette, ITranslator, IDistStepTimes],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    notebooks: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null,
    stepTimes: IDistStepTimes | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const create = async (group: IGroup): Promise<TimelinePanel> => {
      const part = await loaded(import(/* webpackChunkName: "timeline" */ './timelinepanel'));
      const openLog = (rank: number): void => void app.commands.execute(CommandIDs.openLog, { group: group.id, rank });
      const openCell = async (rank: number, execution: IExecution): Promise<void> => {
        // Code that is in no notebook is in the log.
        if (!(await showCell(app, notebooks, execution).catch(() => false))) {
          openLog(rank);
        }
      };
      return new part.TimelinePanel({
        service,
        stepTimes,
        groups,
        group,
        trans,
        openLog,
        openCell: (...which) => void openCell(...which)
      });
    };
    addPanelCommand(
      { app, groups, notebooks, restorer, palette, trans },
      {
        command: OPEN,
        label: trans.__('Show Timeline of Ranks'),
        brief: trans.__('Timeline'),
        namespace: 'jupyter-dist-timeline',
        rank: 20,
        create
      }
    );
  }
};

export default timelinePlugin;
