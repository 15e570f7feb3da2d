/** A code console on ranks: JupyterLab's console, whose cells run on a group as a notebook's cells do, without a kernel. */
import { MainAreaWidget } from '@jupyterlab/apputils';
import type { ICellModel } from '@jupyterlab/cells';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { ICompletionProviderManager } from '@jupyterlab/completer';
import { CodeConsole, IRunCellOptions } from '@jupyterlab/console';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { consoleIcon, ReactiveToolbar, stopIcon, ToolbarButton } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import { IHasPlace, IRankPlace, placeIn } from '../../model/targets/cellplace';
import { getNotebookTarget, getWanted, IRankTarget, METADATA_KEY } from '../../model/targets/target';
import type { IExecution } from '../../services/protocol';
import type {
  IDistExecutions,
  IDistGroups,
  IDistNotebooks,
  IDistService,
  IDistStarter,
  IWantedGroup
} from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { clearViewIcon } from '../../widgets/base/icons';
import { ToolbarFit } from '../../widgets/rankpicker/layout/toolbarfit';
import { TargetModel } from '../../widgets/rankpicker/pickermodel';
import { RankChoice } from '../../widgets/rankpicker/rankchoice';
import { ConsoleCells } from './cells';
import { GroupLabel } from './grouplabel';
import { GroupSession } from './session';

/** How many of its cells a reloaded page shows again. */
const MAX_RESTORED = 100;

export interface IGroupConsoleOptions {
  /** Names the console in the group's history; a reloaded page finds its cells by it. */
  path: string;
  /** Whether its cells may have run before: it is restored. */
  isRestored: boolean;
  target: IRankTarget;
  /** What starts the group again. */
  wanted: IWantedGroup;
  /** Start the group that is missing, and show what fails. */
  startAgain(name: string, wanted: IWantedGroup): void;
  service: IDistService;
  groups: IDistGroups;
  starter: IDistStarter;
  notebooks: IDistNotebooks;
  executions: IDistExecutions;
  rendermime: IRenderMimeRegistry;
  editors: IEditorServices;
  completer: ICompletionProviderManager | null;
  trans: TranslationBundle;
}

/** A cell that ran in this console before. */
interface IRanCell {
  id: string;
  code: string;
  trusted: boolean;
}

export class GroupConsole extends MainAreaWidget<CodeConsole> implements IHasPlace {
  constructor(options: IGroupConsoleOptions) {
    const cells = new ConsoleCells(options.target, options.wanted);
    const { service, rendermime, editors, trans, target } = options;
    const session = new GroupSession({
      banner: trans.__(
        'Console on group %1. Shift+Enter runs a cell on the ranks that are chosen above.',
        target.group
      ),
      history: async () => {
        const group = getNotebookTarget(cells.notebook)?.group ?? target.group;
        return service.history(group).then(
          ({ cells }) => cells.map(({ code }) => code),
          () => []
        );
      }
    });
    const content = new RankConsole({
      contentFactory: new CodeConsole.ContentFactory({ editorFactory: editors.factoryService.newInlineEditor }),
      executor: { runCell: cell => this._run(cell) },
      mimeTypeService: editors.mimeTypeService,
      modelFactory: cells,
      rendermime: rendermime.clone(),
      sessionContext: session.context
    });
    super({ content, toolbar: new ReactiveToolbar() });
    this._options = options;
    this._cells = cells;
    this._session = session;
    this.id = `jupyter-dist-${options.path}`;
    this.addClass('jpd-Console');
    this.title.icon = consoleIcon;
    this.title.closable = true;
    this.target = new ConsoleTarget(cells.notebook, options.groups, options.starter);
    this.target.changed.connect(this._onTarget, this);
    this._onTarget();
    this._fillToolbar();
    content.promptCellCreated.connect(this._onPrompt, this);
    content.cells.changed.connect((_, { type, oldValues }) => {
      if (type === 'remove') {
        oldValues.forEach(({ model }) => cells.remove(model.id));
      }
    });
    options.groups.changed.connect(this._onGroups, this);
    this.node.addEventListener('focusin', this);
    this._ready = this._restore();
  }

  readonly target: ConsoleTarget;

  get path(): string {
    return this._options.path;
  }

  /** What starts the group again. */
  get wanted(): IWantedGroup {
    return getWanted(this._cells.notebook).wanted;
  }

  get rankPlace(): IRankPlace | null {
    return placeIn(this._options.groups, getNotebookTarget(this._cells.notebook));
  }

  /** Run code in the console, on the given ranks or else on the ranks of the next cell. */
  run(code: string, ranks?: string): Promise<void> {
    return this.content.inject(code, ranks ? { [METADATA_KEY]: { ranks } } : {});
  }

  /** Interrupt its cells. Rejects with the first error. */
  interrupt(): Promise<void> {
    return this._options.notebooks.interrupt(this._cells.notebook);
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.node.removeEventListener('focusin', this);
    this._options.groups.changed.disconnect(this._onGroups, this);
    this._opened?.dispose();
    this._fit?.dispose();
    this.target.dispose();
    this._session.dispose();
    super.dispose();
    this._cells.dispose();
  }

  handleEvent(event: Event): void {
    // Others run cells on the group, too.
    const { relatedTarget } = event as FocusEvent;
    if (this._isHistoryOld && !this.content.node.contains(relatedTarget as Node | null)) {
      this._isHistoryOld = false;
      this._session.refreshHistory();
    }
  }

  protected onCloseRequest(msg: Parameters<MainAreaWidget['processMessage']>[0]): void {
    super.onCloseRequest(msg);
    this.dispose();
  }

  private async _run({ cell, onCellExecuted }: IRunCellOptions): Promise<boolean> {
    await this._ready;
    const executed = { cell, executionDate: new Date() };
    try {
      return await this._options.notebooks.executor.runCell({
        cell,
        notebook: this._cells.notebook,
        notebookConfig: {} as never,
        onCellExecutionScheduled: () => undefined,
        onCellExecuted: ({ success }) => onCellExecuted({ ...executed, success })
      });
    } catch {
      return false; // the cell shows why
    }
  }

  /** Show the cells that ran here before the page was reloaded, and follow the cells that still run. */
  private async _restore(): Promise<void> {
    const { groups, notebooks, path, isRestored, target } = this._options;
    await groups.ready;
    if (isRestored) {
      const group = groups.find(target.group);
      const ran = group ? await this._ran(group.id).catch(() => []) : [];
      if (!this.isDisposed) {
        ran.forEach(cell => this._show(cell));
      }
    }
    if (!this.isDisposed) {
      this._opened = notebooks.open(this._cells.notebook, { path: () => path, savedAt: 0 });
    }
  }

  private async _ran(group: string): Promise<IRanCell[]> {
    const { executions: known, service, path } = this._options;
    const [{ executions }, { cells }] = await Promise.all([service.executions(group), service.history(group)]);
    const codes = new Map(cells.map(cell => [cell.execution_id, cell.code]));
    const codeOf = async ({ id }: IExecution): Promise<string> =>
      codes.get(id) ?? (await service.view(group, id)).execution.code ?? '';
    const own = executions
      .filter(({ notebook, state }) => notebook === path && state !== 'aborted')
      .slice(-MAX_RESTORED);
    const cellOf = async (execution: IExecution): Promise<IRanCell> => ({
      id: execution.cell_id ?? '',
      code: await codeOf(execution),
      // Other users of the server can name this console, too.
      trusted: known.isOwn(execution.id)
    });
    return Promise.all(own.map(cellOf));
  }

  private _show({ id, code, trusted }: IRanCell): void {
    this._cells.next = id;
    const cell = this.content.createCodeCell();
    cell.model.sharedModel.setSource(code);
    cell.model.trusted = trusted;
    this.content.addCell(cell);
  }

  private _fillToolbar(): void {
    const { trans } = this._options;
    const { content, target, toolbar } = this;
    toolbar.node.setAttribute('aria-label', trans.__('Console tools'));
    const interrupt = new ToolbarButton({
      icon: stopIcon,
      tooltip: trans.__('Interrupt the cells of this console'),
      onClick: () => void this.interrupt().catch(notifyError)
    });
    const clear = new ToolbarButton({
      icon: clearViewIcon,
      tooltip: trans.__('Clear the cells of this console'),
      onClick: () => content.clear()
    });
    toolbar.addItem('interrupt', interrupt);
    toolbar.addItem('clear', clear);
    toolbar.addItem('group', new GroupLabel(target, trans));
    const startAgain = (): void => {
      const { missing } = target;
      if (missing) {
        this._options.startAgain(missing.name, missing.read.wanted);
      }
    };
    const choice = new RankChoice({ model: target, trans, startAgain, leave: () => this.content.activate() });
    const fit = (this._fit = new ToolbarFit(toolbar as ReactiveToolbar, choice, 'group', 'ranks'));
    const update = (): void => fit.show(target.missing ? 0 : (target.group?.world_size ?? 0));
    target.changed.connect(update);
    update();
  }

  private _onTarget(): void {
    const { trans } = this._options;
    const { target } = this.target;
    this.title.label = target?.group ?? '';
    this.title.caption = trans.__('Console on ranks %1 of %2', target?.ranks ?? '', target?.group ?? '');
  }

  private _onGroups(): void {
    this._isHistoryOld = true;
  }

  private _onPrompt(): void {
    const { completer } = this._options;
    const { promptCell, rendermime } = this.content;
    void completer?.updateCompleter({
      widget: this,
      editor: promptCell?.editor ?? null,
      sanitizer: rendermime.sanitizer
    });
  }

  private readonly _cells: ConsoleCells;
  private _fit: ToolbarFit | null = null;
  private _isHistoryOld = false;
  private _opened: IDisposable | null = null;
  private readonly _options: IGroupConsoleOptions;
  private readonly _ready: Promise<void>;
  private readonly _session: GroupSession;
}

/** A console whose cells have fields and buttons: the output of ranks asks for input. */
class RankConsole extends CodeConsole {
  handleEvent(event: Event): void {
    // It takes every Enter outside of the prompt to the prompt.
    const isOurs = event.type === 'keydown' && (event.target as Element).closest('input, select, button, a, textarea');
    if (!isOurs) {
      super.handleEvent(event);
    }
  }
}

/** The ranks of the next cell. */
export class ConsoleTarget extends TargetModel {
  constructor(
    readonly notebook: INotebookModel,
    groups: IDistGroups,
    starter: IDistStarter
  ) {
    super(groups, starter);
    notebook.metadataChanged.connect(this.emitChanged, this);
  }

  readonly hasCellTargets = false;
  protected readonly activeCell = null;

  protected selectedCells(): ICellModel[] {
    return [];
  }
}
