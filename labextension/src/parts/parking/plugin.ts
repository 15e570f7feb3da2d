import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, showDialog } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, type TranslationBundle } from '@jupyterlab/translation';
import { addGroupNews, isAway } from '../../model/format/states';
import { GroupChoice } from '../../plugins/commands/groupchoice';
import { addMemoryItem, addRepair } from '../../plugins/commands/groupmenu';
import { addGroupCommands, type IGroupCommand } from '../../plugins/commands/rows';
import type { IGroup } from '../../services/protocol';
import { IDistGroups, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { parkedNews } from './parkednews';

const CommandIDs = {
  /** Give the devices of an idle group back; args: `{group}`. */
  park: 'jupyter-dist:park',
  /** Bring a parked group back to its devices; args: `{group}`. */
  resume: 'jupyter-dist:resume'
} as const;

const parkingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:parking',
  description: 'Parks groups, which give their devices back, and resumes them.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  optional: [INotebookTracker, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    addGroupCommands(app, palette, groups, new GroupChoice(groups, tracker, trans), rows(service, trans), trans);
    const isReady = ({ state }: IGroup): boolean => state === 'ready';
    addMemoryItem({ command: CommandIDs.park, rank: 10, isVisible: group => !isAway(group), isEnabled: isReady });
    addMemoryItem({ command: CommandIDs.resume, rank: 20, isVisible: isAway, isEnabled: isParked });
    addRepair({
      command: CommandIDs.resume,
      brief: trans.__('Resume'),
      title: () => trans.__('Bring its tensors back to where they were; the next cell does so, too'),
      standsAlone: true,
      isVisible: () => false, // the menu has it already
      isEnabled: isParked
    });
    addGroupNews(parkedNews);
  }
};

/** The commands that park a group and resume it. */
function rows(service: IDistService, trans: TranslationBundle): IGroupCommand[] {
  return [
    {
      id: CommandIDs.park,
      label: trans.__('Park Ranks'),
      caption: trans.__(
        'Give the devices of idle ranks back; all variables are kept, and the next cell resumes the ranks'
      ),
      when: group => group.state === 'ready',
      act: group => park(service, group, trans).catch(reason => notifyError(reason, { group: group.id }))
    },
    {
      id: CommandIDs.resume,
      label: trans.__('Resume Parked Ranks'),
      caption: trans.__('Bring the tensors of parked ranks back to their devices'),
      when: isParked,
      act: async group => {
        await service.resume(group.id).catch(reason => notifyError(reason, { group: group.id }));
      }
    }
  ];
}

function isParked({ state }: IGroup): boolean {
  return state === 'parked';
}

/** Park a group; on CPU it has only files to go to, which the user is asked about. */
async function park(service: IDistService, group: IGroup, trans: TranslationBundle): Promise<void> {
  if (group.devices.length > 0) {
    await service.park(group.id);
    return;
  }
  const answer = await showDialog({
    title: trans.__('Park %1 in files?', group.name),
    body: trans.__(
      'Its ranks hold no devices. Their tensors can move into files, which gives the memory of the machine back. All variables are kept, and the next cell resumes the ranks.'
    ),
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Park in Files') })]
  });
  if (answer.button.accept) {
    await service.park(group.id, { to: 'file' });
  }
}

export default parkingPlugin;
