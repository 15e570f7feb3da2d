/** Starts groups for notebooks in one step: as many ranks as were asked for, or what the notebook wants. */
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IDevices, IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService, IDistStarter, IReadWanted, IWantedGroup } from '../../tokens';
import { savedBundle } from '../cells/output/celloutput';
import { codeCells } from '../cells/output/cellruns';
import { ChangingModel } from '../changing';
import { getNotebookTarget, getWanted } from '../targets/target';
import { isGone } from '../groups/groups';
import { fittingSize, isName, nameFor, offeredSizes, readWanted, sizeOf, wantedOf } from '../groups/wanted';

const MEASURE_TRIES = 4;
const MEASURE_AGAIN_MS = 1000;

type Service = Pick<IDistService, 'devices' | 'start' | 'starting' | 'requestOf'>;

export class GroupStarter extends ChangingModel implements IDistStarter {
  constructor(service: Service, groups: IDistGroups) {
    super();
    this._service = service;
    this._groups = groups;
    this.machine = this._measure();
    groups.changed.connect(this._onGroups, this);
    void groups.ready.then(() => {
      this._isReady = true;
      this.emitChanged();
    });
  }

  readonly machine: Promise<void>;

  get sizes(): readonly number[] {
    return offeredSizes(this._machine);
  }

  get fitting(): number {
    return fittingSize(this._machine);
  }

  isMissing(name: string): boolean {
    const group = this._groups.find(name);
    return this._isReady && (group === null || isGone(group)) && !this.isStarting(name);
  }

  isStarting(name: string): boolean {
    return this._service.starting(name) !== null;
  }

  wantedBy(notebook: INotebookModel, name: string): IReadWanted {
    const isOwn = getNotebookTarget(notebook)?.group === name;
    const read = isOwn ? getWanted(notebook) : { wanted: {}, refused: [] };
    if (sizeOf(read.wanted) !== null) {
      return read;
    }
    const last = this._last.get(name);
    const seen = last ? this.describe(last) : { num_ranks: savedSize(notebook, name) ?? this.fitting };
    return { ...read, wanted: { ...seen, ...read.wanted } };
  }

  describe(group: IGroup): IWantedGroup {
    return wantedOf(group, this._service.requestOf(group.id), this._machine?.devices ?? []);
  }

  async start(name: string, wanted: IWantedGroup, notebook: string): Promise<IGroup> {
    const free = isName(name) ? name : nameFor(notebook, this._groups.groups);
    const starting = this._service.start({ ...wanted, name: free, notebook });
    this.emitChanged();
    try {
      return await starting;
    } finally {
      this.emitChanged();
    }
  }

  startNew(ranks: number, notebook: string): Promise<IGroup> {
    return this.start(nameFor(notebook, this._groups.groups), { num_ranks: ranks }, notebook);
  }

  /** A server that cannot answer when the page is loaded is asked again; after that, the usual numbers are offered. */
  private async _measure(): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        this._machine = await this._service.devices();
        this.emitChanged();
        return;
      } catch (reason) {
        if (tries === MEASURE_TRIES) {
          console.warn('jupyter_dist: could not read the devices', reason);
          return;
        }
      }
      await new Promise(resolve => setTimeout(resolve, tries * MEASURE_AGAIN_MS));
    }
  }

  /** Keep what a group was like, for when it is gone. */
  private _onGroups(): void {
    for (const group of this._groups.groups) {
      this._last.set(group.name, group);
    }
    this.emitChanged();
  }

  private readonly _groups: IDistGroups;
  private _isReady = false;
  private readonly _last = new Map<string, IGroup>();
  private _machine: IDevices | null = null;
  private readonly _service: Service;
}

/** The size of the group in the outputs of a notebook that was saved before notebooks had fields for the group they want. */
function savedSize(notebook: INotebookModel, name: string): number | null {
  for (const cell of codeCells(notebook)) {
    const group = savedBundle(cell)?.group;
    if (group?.name === name) {
      return readWanted({ num_ranks: group.world_size }).wanted.num_ranks ?? null;
    }
  }
  return null;
}
