import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IRunningSessionManagers, IRunningSessions } from '@jupyterlab/running';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import { ranksIcon } from '../../widgets/base/icons';
import { groupSummary } from '../../widgets/states/statewords';

/** The groups in the panel of running sessions. */
export const runningPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:running',
  description: 'Lists groups of ranks among the running sessions.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IRunningSessionManagers],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    managers: IRunningSessionManagers,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const open = () => void app.commands.execute(CommandIDs.showSidebar);
    managers.add(new RunningGroups(service, groups, trans, open));
  }
};

class RunningGroups implements IRunningSessions.IManager {
  constructor(service: IDistService, groups: IDistGroups, trans: TranslationBundle, open: () => void) {
    this.name = trans.__('Rank groups');
    this.shutdownLabel = trans.__('Shut Down');
    this.shutdownAllLabel = trans.__('Shut Down All');
    this.shutdownAllConfirmationText = trans.__(
      'All groups of ranks will be shut down, and all their variables will be lost.'
    );
    this._service = service;
    this._groups = groups;
    this._trans = trans;
    this._open = open;
    groups.changed.connect(this.refreshRunning, this);
    this.refreshRunning();
  }

  readonly name: string;
  readonly shutdownLabel: string;
  readonly shutdownAllLabel: string;
  readonly shutdownAllConfirmationText: string;

  get runningChanged(): ISignal<this, void> {
    return this._changed;
  }

  /**
   * Always the same array: JupyterLab first renders the array that it got when it created the section, and does
   * not notice earlier changes.
   */
  running(): IRunningSessions.IRunningItem[] {
    return this._items;
  }

  /** Nothing to do: the groups are always up to date. */
  refreshRunning(): void {
    this._items.splice(0, this._items.length, ...this._groups.groups.map(group => this._item(group)));
    this._changed.emit();
  }

  shutdownAll(): void {
    this._groups.groups.forEach(group => this._shutdown(group));
  }

  private _item(group: IGroup): IRunningSessions.IRunningItem {
    const age = (): number => this._groups.clock.since(group.started_at);
    return {
      label: () => `${group.name}: ${groupSummary(this._trans, group, age())}`,
      labelTitle: () => `${group.environment.display_name}\n${group.cwd}`,
      icon: () => ranksIcon,
      open: this._open,
      shutdown: () => this._shutdown(group)
    };
  }

  private _shutdown(group: IGroup): void {
    this._service.shutdown(group.id).catch(reason => {
      console.error(`jupyter_dist: ${group.name} could not be shut down`, reason);
    });
  }

  private readonly _service: IDistService;
  private readonly _groups: IDistGroups;
  private readonly _trans: TranslationBundle;
  private readonly _open: () => void;
  private readonly _items: IRunningSessions.IRunningItem[] = [];
  private readonly _changed = new Signal<this, void>(this);
}
