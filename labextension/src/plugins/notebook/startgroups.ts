/** Starts the groups of notebooks: from the picker, from a cell whose group is missing, and with a new notebook. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, ISessionContextDialogs, showDialog } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookModel, INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import { findCell } from '../../model/cells/output/cellruns';
import { GroupStarter } from '../../model/notebooks/groupstarter';
import { nameFor } from '../../model/groups/wanted';
import { getNotebookTarget, METADATA_KEY, resolveTarget, setNotebookTarget } from '../../model/targets/target';
import type { IGroup } from '../../services/protocol';
import {
  CommandIDs,
  IDistGroups,
  IDistNotebooks,
  IDistService,
  IDistStarter,
  type IReadWanted,
  type IWantedGroup
} from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { mayTakeFocus } from '../../widgets/base/focus';
import { createAdvice } from '../../widgets/rankoutput/elements';
import { ReplaceButton } from '../../widgets/rankoutput/notes/replacebutton';
import { SECTION_RANK } from '../commands/launchersection';
import { ranksIcon } from '../../widgets/base/icons';
import { beginnings, type IBeginning, type IFoundBeginning } from '../../widgets/starting/beginnings';
import { CellOffer, type IOfferActions } from '../../widgets/starting/celloffer';
import { startNote } from '../../widgets/starting/startnote';
import { startDetails, startLabel } from '../../widgets/starting/startwords';

export const starterPlugin: JupyterFrontEndPlugin<IDistStarter> = {
  id: 'jupyter-dist:starter',
  description: 'Starts groups for notebooks in one step.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  provides: IDistStarter,
  activate: (_: JupyterFrontEnd, service: IDistService, groups: IDistGroups): IDistStarter =>
    new GroupStarter(service, groups)
};

/** Offers to start a group in cells whose group is missing, and to replace dead ranks; shows what starts. */
export const cellOffersPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:cell-offers',
  description: 'Offers to start the group of a cell that could not run because it is not there.',
  autoStart: true,
  requires: [IDistStarter, IDistGroups, IDistNotebooks, INotebookTracker],
  optional: [ISessionContextDialogs, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    starter: IDistStarter,
    groups: IDistGroups,
    notebooks: IDistNotebooks,
    tracker: INotebookTracker,
    dialogs: ISessionContextDialogs | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const all = new WeakMap<NotebookPanel, CellOffers>();
    const viewsOf = (notebook: INotebookModel): NotebookPanel[] =>
      tracker.filter(({ content }) => content.model === notebook);
    notebooks.refused.connect((_, { notebook, cellId, code, advice }) => {
      for (const panel of viewsOf(notebook)) {
        const offers = all.get(panel) ?? new CellOffers({ app, starter, groups, panel, dialogs, trans });
        all.set(panel, offers);
        offers.add(cellId, code, advice);
      }
    });
    notebooks.awaitsStart.connect((_, { notebook, cellId, answered }) => {
      const cells = viewsOf(notebook).flatMap(({ content }) =>
        content.widgets.filter(({ model }) => model.id === cellId)
      );
      for (const widget of cells) {
        const note = startNote(trans);
        widget.node.append(note);
        void answered.then(() => note.remove());
      }
    });
  }
};

/** Creates notebooks whose cells run on ranks. */
export const newNotebookPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:new-notebook',
  description: 'Creates a notebook and starts its group in one step: a tile in the launcher.',
  autoStart: true,
  requires: [IDistStarter, IDistGroups],
  optional: [ILauncher, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    starter: IDistStarter,
    groups: IDistGroups,
    launcher: ILauncher | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const command = CommandIDs.newNotebook;
    app.commands.addCommand(command, {
      label: ({ ranks }) => notebookLabel(trans, sizeIn(ranks) ?? starter.fitting),
      caption: trans.__('Create a notebook, and start a group of ranks that runs its cells'),
      icon: args => (args.isPalette ? undefined : ranksIcon),
      describedBy: { args: NEW_ARGS },
      execute: ({ ranks, cwd }) =>
        newNotebook(app, starter, groups, sizeIn(ranks) ?? starter.fitting, typeof cwd === 'string' ? cwd : '')
    });
    // The number on the tile is the machine's.
    void starter.machine.then(() => {
      const category = trans.__('Ranks');
      launcher?.add({ command, args: { ranks: starter.fitting }, category, categoryRank: SECTION_RANK, rank: 0 });
      for (const ranks of starter.sizes) {
        palette?.addItem({ command, args: { ranks, isPalette: true }, category });
      }
    });
  }
};

const NEW_ARGS = {
  type: 'object',
  properties: { ranks: { type: 'number' }, cwd: { type: 'string' }, isPalette: { type: 'boolean' } }
} as const;

function sizeIn(ranks: unknown): number | null {
  return typeof ranks === 'number' && Number.isInteger(ranks) && ranks > 0 ? ranks : null;
}

function notebookLabel(trans: TranslationBundle, size: number): string {
  return trans._n('Notebook on %1 rank', 'Notebook on %1 ranks', size);
}

/** Create and open a notebook while its group starts; its first cell waits for the ranks. */
async function newNotebook(
  app: JupyterFrontEnd,
  starter: IDistStarter,
  groups: IDistGroups,
  ranks: number,
  folder: string
): Promise<NotebookPanel | undefined> {
  const { contents } = app.serviceManager;
  try {
    const { path } = await contents.newUntitled({ path: folder, type: 'notebook' });
    const local = contents.localPath(path);
    const name = nameFor(local, groups.groups);
    const target = { group: name, ranks: 'all', start: { num_ranks: ranks } };
    const content = {
      nbformat: 4,
      nbformat_minor: 5,
      metadata: { language_info: { name: 'python' }, [METADATA_KEY]: target },
      // A new id: the server knows cells by notebook and id, and keeps the notebook's name from when a cell was submitted.
      cells: [{ id: UUID.uuid4(), cell_type: 'code', metadata: {}, outputs: [], execution_count: null, source: '' }]
    };
    // If it fails, the notebook offers to try again.
    starter.start(name, target.start, local).catch(reason => notifyError(reason));
    await contents.save(path, { type: 'notebook', format: 'json', content });
    const panel: NotebookPanel = await app.commands.execute('docmanager:open', { path, factory: 'Notebook' });
    void panel.revealed.then(() => {
      panel.content.mode = 'edit';
    });
    return panel;
  } catch (reason) {
    notifyError(reason);
    return undefined;
  }
}

/** What starts in one notebook: asks first if it sets variables, or asks a launcher for nodes, that the user was not shown. */
export async function startWanted(
  app: JupyterFrontEnd,
  starter: IDistStarter,
  panel: NotebookPanel,
  name: string,
  trans: TranslationBundle,
  wasShown = false
): Promise<IGroup | null> {
  const model = panel.content.model!;
  const read = starter.wantedBy(model, name);
  const details = startDetails(trans, read);
  const { env, launcher } = read.wanted;
  if ((env || launcher) && !wasShown && !(await confirm(startLabel(trans, name, read.wanted), details, trans))) {
    return null;
  }
  return started(app, panel, name, read, () => starter.start(name, read.wanted, localPath(app, panel)));
}

/** Start a group; if that fails, show why and open the form with the same fields. */
export async function started(
  app: JupyterFrontEnd,
  panel: NotebookPanel,
  name: string,
  { wanted }: IReadWanted,
  start: () => Promise<IGroup>
): Promise<IGroup | null> {
  const { activeElement } = document;
  try {
    return await start();
  } catch (reason) {
    notifyError(reason);
    const filled = { ...wanted, name };
    const keepsFocus = document.activeElement !== activeElement;
    return app.commands.execute(CommandIDs.startGroup, {
      notebook: panel.context.path,
      wanted: filled as never,
      keepsFocus
    });
  }
}

export function localPath(app: JupyterFrontEnd, panel: NotebookPanel): string {
  return app.serviceManager.contents.localPath(panel.context.path);
}

async function confirm(title: string, details: string[], trans: TranslationBundle): Promise<boolean> {
  const body = trans.__('This notebook asks for more than ranks:') + '\n' + details.join('\n');
  const buttons = [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Start') })];
  return (await showDialog({ title: `${title}?`, body, buttons })).button.accept;
}

interface IOffersOptions {
  app: JupyterFrontEnd;
  starter: IDistStarter;
  groups: IDistGroups;
  panel: NotebookPanel;
  dialogs: ISessionContextDialogs | null;
  trans: TranslationBundle;
}

/** What a group can begin with. */
interface IFound {
  readonly beginning: IBeginning;
  readonly way: IFoundBeginning;
}

/** The offers in the cells of one notebook. */
class CellOffers {
  constructor(private readonly _options: IOffersOptions) {
    const { panel, starter } = _options;
    starter.changed.connect(this._update, this);
    panel.content.model!.metadataChanged.connect(this._update, this);
    // The model may stay open in another view.
    panel.disposed.connect(() => Signal.clearData(this));
  }

  add(cellId: string, code: string, advice = ''): void {
    this._drop(cellId);
    if (code === 'rank_dead') {
      this._offerReplacement(cellId, advice);
      return;
    }
    this._offers.set(cellId, null);
    this._update();
  }

  /** A button that replaces dead ranks, until the cell has another output, and what else can be done. */
  private _offerReplacement(cellId: string, hint: string): void {
    const { app, groups, panel, trans } = this._options;
    const model = panel.content.model!;
    const cell = findCell(model, cellId);
    const widget = panel.content.widgets.find(({ model }) => model.id === cellId);
    const group = cell && groups.find(resolveTarget(model, cell)?.group ?? '');
    if (!cell || !widget || !group) {
      return;
    }
    const replace = (id: string): void => void app.commands.execute(CommandIDs.replace, { group: id });
    const button = new ReplaceButton({ trans, groups, replace });
    const line = document.createElement('div');
    line.className = 'jpd-CellOffer';
    line.append(createAdvice({ code: 'rank_dead', message: '', hint }), button.node);
    widget.node.append(line);
    button.show(group.id);
    const { outputs } = cell; // which a cell that is disposed of has not any more
    const end = (): void => {
      outputs.changed.disconnect(end);
      button.dispose();
      line.remove();
    };
    outputs.changed.connect(end);
    widget.disposed.connect(end);
  }

  private _update(): void {
    for (const cellId of [...this._offers.keys()]) {
      this._show(cellId);
    }
  }

  private _show(cellId: string): void {
    const { panel, starter, trans } = this._options;
    const { model } = panel.content;
    const cell = model && findCell(model, cellId);
    const name = cell && resolveTarget(model, cell)?.group;
    const widget = panel.content.widgets.find(({ model }) => model.id === cellId);
    if (!name || !widget || !starter.isMissing(name)) {
      this._drop(cellId);
      return;
    }
    const read = starter.wantedBy(model, name);
    const label = startLabel(trans, name, read.wanted);
    const offer = this._offers.get(cellId) ?? new CellOffer(trans);
    this._offers.set(cellId, offer);
    const found = this._found.get(name);
    if (found === undefined) {
      void this._find(name);
    }
    offer.update(label, startDetails(trans, read), {
      ...(found ? { startWith: this._startWith(cellId, name, found) } : {}),
      start: () => this._start(cellId, name, false),
      runUpToHere: () => this._start(cellId, name, true),
      change: () => this._change(cellId, name, read)
    });
    if (offer.node.parentElement !== widget.node) {
      widget.node.append(offer.node);
    }
  }

  /** Start the group with what was found for it, and its number of ranks. */
  private _startWith(cellId: string, name: string, { beginning, way }: IFound): IOfferActions['startWith'] {
    const { app, panel, starter } = this._options;
    const start = async (): Promise<void> => {
      const read = starter.wantedBy(panel.content.model!, name);
      const begin = async (): Promise<IGroup> => {
        const group = await starter.start(name, sizedAs(read.wanted, way.numRanks), localPath(app, panel));
        await beginning.begin(group, way.chosen);
        return group;
      };
      this._started(cellId, await started(app, panel, name, read, begin), name, false);
    };
    return { ...way, start };
  }

  /** Ask what a group of that name can begin with: the first that is found is offered. */
  private async _find(name: string): Promise<void> {
    this._found.set(name, null);
    try {
      for (const beginning of beginnings()) {
        const way = await beginning.find(name);
        if (way) {
          this._found.set(name, { beginning, way });
          this._update();
          return;
        }
      }
    } catch (reason) {
      this._found.delete(name); // the next change asks again
      console.warn('jupyter_dist: could not list what a group can begin with', reason);
    }
  }

  private async _start(cellId: string, name: string, andRun: boolean): Promise<void> {
    const { app, starter, panel, trans } = this._options;
    this._started(cellId, await startWanted(app, starter, panel, name, trans, true), name, andRun);
  }

  private async _change(cellId: string, name: string, { wanted }: IReadWanted): Promise<void> {
    const { app, panel } = this._options;
    const filled = { ...wanted, name };
    const group = await app.commands.execute(CommandIDs.startGroup, {
      notebook: panel.context.path,
      wanted: filled as never
    });
    this._started(cellId, group, name, false);
  }

  private _started(cellId: string, group: IGroup | null, name: string, andRun: boolean): void {
    const { panel, starter } = this._options;
    const { model } = panel.content;
    if (!group || panel.isDisposed || !model) {
      return;
    }
    const target = getNotebookTarget(model);
    if (target?.group === name) {
      setNotebookTarget(model, { ...target, group: group.name }, starter.describe(group));
    }
    this._drop(cellId);
    clearRefusal(panel, cellId);
    if (mayTakeFocus(panel.node)) {
      panel.content.activate();
    }
    if (andRun) {
      this._runUpTo(cellId);
    }
  }

  private _runUpTo(cellId: string): void {
    const { panel, dialogs } = this._options;
    const { content, sessionContext } = panel;
    const last = content.widgets.findIndex(({ model }) => model.id === cellId);
    const cells = content.widgets.slice(0, last + 1);
    void NotebookActions.runCells(content, cells, sessionContext, dialogs ?? undefined);
  }

  private _drop(cellId: string): void {
    this._offers.get(cellId)?.dispose();
    this._offers.delete(cellId);
  }

  /** By the name of a group; null where there is none, or it is not known yet. */
  private readonly _found = new Map<string, IFound | null>();
  private readonly _offers = new Map<string, CellOffer | null>();
}

/** The same group with another number of ranks, unless it has devices or nodes, which count them. */
function sizedAs(wanted: IWantedGroup, size: number): IWantedGroup {
  return wanted.num_ranks === undefined ? wanted : { ...wanted, num_ranks: size };
}

/** Take away the sentence that there is no group: there is one now. */
function clearRefusal(panel: NotebookPanel, cellId: string): void {
  const cell = findCell(panel.content.model!, cellId);
  const output = cell?.outputs.length === 1 ? cell.outputs.get(0).toJSON() : null;
  if (output?.output_type === 'error' && output.ename === 'unknown_group') {
    cell!.outputs.clear();
  }
}
