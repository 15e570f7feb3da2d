/**
 * What the plugins provide to each other and to other extensions:
 * interfaces, tokens, command ids.
 */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookCellExecutor, INotebookModel } from '@jupyterlab/notebook';
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import type { ReactElement } from 'react';
import type {
  ICodeLine,
  IComparison,
  IErrorBody,
  IExecution,
  IGroup,
  IRanksBundle,
  IRunRequest,
  ISavedItem,
  IStartRequest,
  IViewItem
} from './services/protocol';
import type { IService } from './services/service';

/** Commands that one plugin registers and another runs. */
export const CommandIDs = {
  /**
   * Start a group: opens the form; with args `{notebook: path}` resolves with the group that was started for it, or null.
   * `{wanted: {name, ...fields of a start}}` fills it in; `{keepsFocus: true}`: the user is doing something else by now.
   */
  startGroup: 'jupyter-dist:start-group',
  /** Create a notebook, and start a group for it; args: `{ranks?: number, cwd?: folder}`. */
  newNotebook: 'jupyter-dist:new-notebook',
  /** Create a notebook, or open a console, with the kernel Ranks; args: as JupyterLab's commands have. */
  newKernelNotebook: 'jupyter-dist:new-kernel-notebook',
  newKernelConsole: 'jupyter-dist:new-kernel-console',
  /** Open the rank output panel; args: `{group: id or name, rank?: number}`. */
  openLog: 'jupyter-dist:open-log',
  /** Open the panel with the variables of ranks; args: `{group: id or name}`. */
  openVariables: 'jupyter-dist:open-variables',
  /** Go to the first cell of the current notebook in which ranks differ. */
  firstDifference: 'jupyter-dist:first-difference',
  /** Interrupt the ranks of the current notebook's group, or `{group, ranks?}`. */
  interrupt: 'jupyter-dist:interrupt',
  /** Restart the ranks of the current notebook's group, or `{group}`. */
  restart: 'jupyter-dist:restart',
  /** Replace dead ranks by new processes, after a dialog on their first variables; args: `{group}`. */
  replace: 'jupyter-dist:replace',
  /** Show the cells that ranks have missed, to run them there; args: `{group, execution?}`, where the cell of `execution` is checked. */
  catchUp: 'jupyter-dist:catch-up',
  /**
   * The same, from a notification; nothing if replaced ranks have missed no cell; args: `{group}`. With `{group, asDialog: true}`,
   * nothing now, and the next time the dialog in place of the notification.
   */
  offerCatchUp: 'jupyter-dist:offer-catch-up',
  /** Kill one rank; the others are not affected; args: `{group, rank}`. */
  killRank: 'jupyter-dist:kill-rank',
  /** Re-create the process group in the same processes; args: `{group}`. */
  reform: 'jupyter-dist:reform',
  /** Start a group that has ended, with the options of its start; args: `{group}`. */
  startAgain: 'jupyter-dist:start-again',
  /** Shut a group down; args: `{group}`. */
  shutdown: 'jupyter-dist:shutdown',
  /** Shut all groups down. */
  shutdownAll: 'jupyter-dist:shutdown-all',
  /** Empty the ranks' memory caches; args: `{group}`. */
  emptyCache: 'jupyter-dist:empty-cache',
  /**
   * Open a console on ranks; args: `{group: id or name, ranks?, path?: of a notebook or file, beside?: id of a widget}`.
   */
  openConsole: 'jupyter-dist:open-console',
  /** Run the current prompt of the current console on ranks. */
  runConsole: 'jupyter-dist:run-console',
  /** Interrupt the cells of the current console on ranks. */
  interruptConsole: 'jupyter-dist:interrupt-console',
  /** Complete, and accept a completion, in the current console on ranks. */
  completeConsole: 'jupyter-dist:complete-console',
  selectCompletion: 'jupyter-dist:select-completion',
  /** Show documentation of the name at the cursor in the current console on ranks. */
  inspectConsole: 'jupyter-dist:inspect-console',
  /** Run the selected text or the current line in a console on ranks; args: `{ranks?}`. */
  runSelection: 'jupyter-dist:run-selection',
  /** The same, on ranks that the user enters. */
  runSelectionOn: 'jupyter-dist:run-selection-on',
  /** Show the Ranks sidebar. */
  showSidebar: 'jupyter-dist:show-sidebar',
  /** Set a target for the selected cells only. */
  overrideCell: 'jupyter-dist:override-cell',
  /** Focus the rank picker of the current notebook. */
  focusPicker: 'jupyter-dist:focus-picker'
} as const;

/** The server, as one object: a method for each operation of its API, and the WebSocket. */
export type IDistService = IService;

export const IDistService = new Token<IDistService>(
  'jupyter-dist:IDistService',
  'The jupyter_dist server: its REST API and its WebSocket.'
);

/** The server's clock, and a tick to redraw running times. */
export interface IClock {
  /** Emitted twice a second while the clock is held. */
  readonly ticked: ISignal<unknown, void>;
  /** The server's time now, in seconds since the epoch. */
  now(): number;
  /** The seconds since a time of the server; never negative, and 0 if the time is not known. */
  since(at: number | null): number;
  /** Update the difference to the server from the time of a message that was just sent. */
  observe(at: number): void;
  /** Keep ticking until the returned function is called. */
  hold(): () => void;
}

/** All groups of the server, kept up to date. */
export interface IDistGroups {
  /** Resolves when the groups are known. */
  readonly ready: Promise<void>;
  /** The groups, sorted by name. Snapshots: do not modify them. */
  readonly groups: readonly IGroup[];
  /** Whether the WebSocket is open; if not, `groups` is the last known state. */
  readonly connected: boolean;
  /** Emitted when a group is added, removed or changed, and when the connection changes. */
  readonly changed: ISignal<IDistGroups, void>;
  /** The clock of the server, which the times of groups and executions are of. */
  readonly clock: IClock;
  /** The group with that name, else with that id, else null. */
  find(reference: string): IGroup | null;
}

export const IDistGroups = new Token<IDistGroups>(
  'jupyter-dist:IDistGroups',
  'All groups of ranks on the server, with their state.'
);

/** The fields of a start that a notebook keeps; neither a path nor an interpreter, which a file must not choose. */
export type IWantedGroup = Pick<
  IStartRequest,
  | 'num_ranks'
  | 'devices'
  | 'environment'
  | 'accelerator'
  | 'backend'
  | 'env'
  | 'launcher'
  | 'launcher_options'
  | 'num_nodes'
  | 'ranks_per_node'
>;

/** A wanted group as it was read from a notebook. */
export interface IReadWanted {
  readonly wanted: IWantedGroup;
  /** The fields that are not valid; they are left out. */
  readonly refused: readonly string[];
}

/** Starts groups for notebooks in one step. */
export interface IDistStarter {
  /** The numbers of ranks to offer, and the number that fits the machine; the usual numbers until `machine`. */
  readonly sizes: readonly number[];
  readonly fitting: number;
  /** Resolves when the machine is known, or cannot be. */
  readonly machine: Promise<void>;
  /** Emitted when any of this may have changed. */
  readonly changed: ISignal<IDistStarter, void>;
  /** Whether the groups are known and none of that name runs. */
  isMissing(name: string): boolean;
  /** Whether this page has asked for a group of that name, and the server has not answered yet. */
  isStarting(name: string): boolean;
  /** What the notebook wants to run under that name: from its metadata, or as it was when it last ran. */
  wantedBy(notebook: INotebookModel, name: string): IReadWanted;
  /** What starts a group like that one again. */
  describe(group: IGroup): IWantedGroup;
  /** Start a group; rejects with a DistError. Another name is found if the server would refuse it. */
  start(name: string, wanted: IWantedGroup, notebook: string): Promise<IGroup>;
  /** Start a group with so many ranks, named after the notebook. */
  startNew(ranks: number, notebook: string): Promise<IGroup>;
}

export const IDistStarter = new Token<IDistStarter>(
  'jupyter-dist:IDistStarter',
  'Starts groups for notebooks in one step.'
);

/** The parts of a followed execution that changed. */
export interface IFollowedChange {
  /** The execution's state or its statuses. */
  execution: boolean;
  /** The items. */
  items: boolean;
}

/** An execution whose view is followed live; shared by all followers. */
export interface IFollowedExecution {
  readonly group: string;
  readonly id: string;
  /** Null until the server answers. */
  readonly execution: IExecution | null;
  /** The items in order. Snapshots: do not modify them. */
  readonly items: readonly IViewItem[];
  /** Why it cannot be followed, e.g. the server no longer knows it. */
  readonly error: IErrorBody | null;
  /** Whether the execution is final (or unknown) and all items have arrived. */
  readonly isEnded: boolean;
  readonly changed: ISignal<IFollowedExecution, IFollowedChange>;
  /** Resolves when isEnded. */
  readonly ended: Promise<void>;
}

/** A reference to a followed execution; dispose it when done. */
export interface IFollower extends IDisposable {
  readonly followed: IFollowedExecution;
}

/** Runs cells on ranks and follows their output. */
export interface IDistExecutions {
  /** Emitted with the id of an execution when it is first followed. */
  readonly followed: ISignal<IDistExecutions, string>;
  /** Submit code; resolves when the server has queued it. */
  run(group: string, request: IRunRequest): Promise<IExecution>;
  /** Whether it was submitted from this tab, also before a reload, so that its output is trusted. */
  isOwn(execution: string): boolean;
  /** Cancel if queued, interrupt if running. */
  cancel(group: string, execution: string): Promise<void>;
  /** Follow an execution's view. */
  follow(group: string, execution: string): IFollower;
  /** The followed execution with that id, if there is one. */
  find(execution: string): IFollowedExecution | null;
}

export const IDistExecutions = new Token<IDistExecutions>(
  'jupyter-dist:IDistExecutions',
  'Runs code on ranks and follows their output.'
);

/** The open notebooks, and the cells they run on ranks. */
export interface IDistNotebooks {
  /** Emitted when a cell starts or ends on ranks, and when a running one is deleted or restored. */
  readonly changed: ISignal<IDistNotebooks, void>;
  /** Emitted when a cell could not run on its group, or was lost with it. */
  readonly refused: ISignal<IDistNotebooks, IRefusedCell>;
  /** Emitted when a cell begins to wait for the server's answer to the start of its group. */
  readonly awaitsStart: ISignal<IDistNotebooks, IAwaitingCell>;
  /** Whether cells empty the device cache of the ranks whose memory they changed. */
  emptyCache: boolean;
  /** Asks what to do with a cell that needs all ranks and is for some; null: such cells run, and do not ask. */
  askFirst: ((message: string) => Promise<'all' | 'anyway' | 'cancel'>) | null;
  /** Runs cells, on ranks or on the kernel, as the notebook is set. */
  readonly executor: INotebookCellExecutor;
  /** Run kernel cells with another executor than JupyterLab's own. */
  runKernelCellsBy(executor: INotebookCellExecutor): void;
  /**
   * Call when a view of a notebook was opened and loaded. The first reconnects
   * the cells to their executions; dispose the result when the view is closed.
   */
  open(notebook: INotebookModel, file: INotebookFile): IDisposable;
  /** Show what other pages, without collaboration, have run in open notebooks. */
  look(): void;
  /** Write the output of running cells into the notebook: it is about to be saved. */
  flush(notebook: INotebookModel): void;
  /** Abort the cells that wait in the page for cells that run elsewhere; running cells are not affected. */
  abortWaiting(notebook: INotebookModel): void;
  /** Interrupt the notebook's cells on ranks. */
  interrupt(notebook: INotebookModel): Promise<void>;
  /** Whether cells of the notebook, including deleted ones, run or wait on ranks. */
  isRunning(notebook: INotebookModel): boolean;
  /** Executions of deleted cells that are still running. */
  readonly deleted: readonly IDeletedRun[];
}

/** A cell that could not run, or was lost. */
export interface IRefusedCell {
  readonly notebook: INotebookModel;
  readonly cellId: string;
  /** The code of the error. */
  readonly code: string;
  /** What to do about it while it holds, if that is not in the cell's output. */
  readonly advice?: string;
}

/** A cell whose group is not known to the server yet: the first start in an environment imports torch before it is. */
export interface IAwaitingCell {
  readonly notebook: INotebookModel;
  readonly cellId: string;
  /** The name of the group. */
  readonly group: string;
  /** Resolves when the start has succeeded or failed. */
  readonly answered: Promise<void>;
}

/** A deleted cell that is still running. */
export interface IDeletedRun {
  /** The execution. */
  readonly id: string;
  /** The name of the group. */
  readonly group: string;
  readonly groupId: string;
  readonly ranks: string;
  interrupt(): Promise<void>;
}

/** A notebook file on the server. */
export interface INotebookFile {
  /** The current path, which changes if it is renamed. */
  path(): string;
  /** When it was last saved, in seconds since the epoch. */
  readonly savedAt: number;
}

export const IDistNotebooks = new Token<IDistNotebooks>(
  'jupyter-dist:IDistNotebooks',
  'The open notebooks and the cells they run on ranks.'
);

/** Whether cells of this page can run on ranks. */
export interface IDistGuard {
  /** Why they cannot, or null. */
  readonly trouble: IErrorBody | null;
}

export const IDistGuard = new Token<IDistGuard>(
  'jupyter-dist:IDistGuard',
  'Whether cells of this page can run on ranks and, if not, why.'
);

/** What other extensions add to a place of this one. */
export interface IContribution {
  /** Unique in its place, for example `my-extension:queue`. */
  readonly id: string;
  /** Its place among others: low numbers first; 100 by default. */
  readonly rank?: number;
}

/** A place that other extensions add to. */
export interface IContributions<T extends IContribution> {
  /** In order. */
  readonly items: readonly T[];
  readonly changed: ISignal<IContributions<T>, void>;
  /** Add one; dispose to take it away. Throws when there is one of that id. */
  add(item: T): IDisposable;
}

/** A section of the Ranks sidebar, below the groups. */
export interface ISidebarSection extends IContribution {
  readonly title: string;
  /** Its content. Called each time the section is opened or the sidebar is shown; disposed when it is not seen any more. */
  createWidget(): Widget;
}

export type IDistSidebarSections = IContributions<ISidebarSection>;

export const IDistSidebarSections = new Token<IDistSidebarSections>(
  'jupyter-dist:IDistSidebarSections',
  'Sections that other extensions add to the Ranks sidebar.'
);

/** A badge in the corner of code cells, beside the badge that shows where a cell runs. */
export interface ICellBadge extends IContribution {
  /** The text for a cell, or null. Called again when the cell's metadata changes, or `changed` is emitted. */
  describe(cell: ICodeCellModel): { text: string; title?: string } | null;
  readonly changed?: ISignal<unknown, void>;
}

export type IDistCellBadges = IContributions<ICellBadge>;

export const IDistCellBadges = new Token<IDistCellBadges>(
  'jupyter-dist:IDistCellBadges',
  'Badges that other extensions add to cells.'
);

/** The output of ranks below a cell, as it is shown at this moment. Never change it. */
export interface IRanksOutput {
  /** The execution's id. */
  readonly execution: string;
  readonly group: { readonly id: string; readonly name: string };
  /** The ranks that it went to. */
  readonly ranks: string;
  readonly state: IExecution['state'];
  readonly items: readonly ISavedItem[];
  /** Whether the notebook is trusted; if not, anybody may have written this. */
  readonly trusted: boolean;
}

/** A button above the output of ranks. */
export interface IOutputAction extends IContribution {
  readonly label: string;
  /** Whether it is there for this output; it is, where this is left out. */
  isVisible?(output: IRanksOutput): boolean;
  execute(output: IRanksOutput): void;
}

export type IDistOutputActions = IContributions<IOutputAction>;

export const IDistOutputActions = new Token<IDistOutputActions>(
  'jupyter-dist:IDistOutputActions',
  'Buttons that other extensions add to the output of ranks.'
);

/** A cell whose output is shown, at this moment. Never change it. */
export interface IShownCell {
  /** What its output has saved. */
  readonly bundle: IRanksBundle;
  /** The same as it is in the file: nothing of it has been checked. */
  readonly unchecked: unknown;
  /** Null if it is not followed: the output is from the file. */
  readonly execution: IExecution | null;
  /** Whether the notebook is trusted; if not, anybody may have written the bundle. */
  readonly isTrusted: boolean;
  /** Whether the connection is lost, so that nothing is known of now. */
  readonly isStale: boolean;
  /** Whether the reason why the cell does not end is shown by a note before this one, or the debugger has stopped it. */
  readonly isHung: boolean;
  /** The server's time, in seconds. */
  readonly now: number;
}

/** A note in the header of a cell's output. Each output has its note. */
export interface IHeaderNote {
  /** Below the row of the header. */
  readonly node?: HTMLElement;
  /** In the row of the header, beside the tabs. */
  readonly label?: HTMLElement;
  /** At the end of that row. */
  readonly button?: HTMLElement;
  /** Whether the header is shown for it, where ranks agree, too. */
  readonly isShown: boolean;
  /** Whether the notes on what single ranks wait for are left out while this one is shown. */
  readonly coversRanks?: boolean;
  /** Whether the reason why the cell does not end is shown with it: notes after it know by `isHung`. */
  readonly explainsHang?: boolean;
  /** Added to the tooltip of the summary. */
  readonly hint?: string;
  /** Called each time the output is drawn. */
  update(cell: IShownCell): void;
  /** Called once, with the header that it is in. */
  watch?(header: HTMLElement): void;
  dispose?(): void;
}

/** What a note may do with the page. */
export interface INoteContext {
  /** Have the output drawn again: the note has news. */
  redraw(): void;
  /** Go to a line of a cell that ran on a group. */
  openLine(group: string, execution: string, place: ICodeLine): void;
}

/** Notes of one kind, in the headers of all outputs of ranks. */
export interface IHeaderNotes extends IContribution {
  create(context: INoteContext): IHeaderNote;
  /** How ranks differ in a cell that ran, in sentences, for the strip in the notebook's margin. */
  differences?(execution: IExecution): readonly string[];
  /** Why a running cell cannot end, in a sentence for a notification; null if it may. */
  cannotEnd?(execution: IExecution): string | null;
}

export type IDistHeaderNotes = IContributions<IHeaderNotes>;

export const IDistHeaderNotes = new Token<IDistHeaderNotes>(
  'jupyter-dist:IDistHeaderNotes',
  'Notes that parts and other extensions add to the header of the output of ranks.'
);

/** The output of a cell as it is shown. Never change it. */
export interface IShownOutput {
  readonly group: string;
  readonly execution: string;
  /** Whether it is followed; if not, it is from the file. */
  readonly isLive: boolean;
  readonly items: readonly ISavedItem[];
}

/** A tab of a cell's output, between the folded output and the tabs of ranks. Each output has its own. */
export interface IOutputTab {
  readonly label: string;
  readonly caption: string;
  /** Whether there is something to show. */
  readonly exists: boolean;
  /** Created when the tab is first shown. */
  readonly pane: Widget;
  /** Called each time the output is drawn. */
  read(output: IShownOutput): void;
  /** Called after that while the tab is shown. */
  update(): void;
  dispose(): void;
}

/** Tabs of one kind, in all outputs of ranks. */
export interface IOutputTabs extends IContribution {
  /** `redraw` has the output drawn again: there is more to read. */
  create(redraw: () => void): IOutputTab;
}

export type IDistOutputTabs = IContributions<IOutputTabs>;

export const IDistOutputTabs = new Token<IDistOutputTabs>(
  'jupyter-dist:IDistOutputTabs',
  'Tabs that parts and other extensions add to the output of ranks.'
);

/** Where parts add to outputs that are shown without a server. */
export interface ISavedPlaces {
  readonly tabs: IDistOutputTabs;
  readonly notes: IDistHeaderNotes;
}

/** How long a step of a cell took, and when that was measured: seconds since the epoch. */
export interface IStepTime {
  readonly at: number;
  readonly seconds: number;
}

/** Knows how long the steps of cells take. */
export interface IDistStepTimes {
  /** Resolves with the times of an execution, in order; rejects if it was not watched. */
  of(group: string, execution: string): Promise<readonly IStepTime[]>;
}

export const IDistStepTimes = new Token<IDistStepTimes>(
  'jupyter-dist:IDistStepTimes',
  'Knows how long the steps of cells take, for the timeline.'
);

/** A button beside a variable in the panel *Variables*, which asks ranks; only while they are idle. */
export interface IVariableQuestion extends IContribution {
  readonly label: string;
  /** Whether it can be asked of a variable. */
  isFor(variable: { readonly name: string; readonly rows: readonly { readonly kind: string }[] }): boolean;
  /** What the button does, with the name of the variable. */
  caption(name: string): string;
  /** Its answer is shown below the variable's row. */
  ask(group: string, name: string): Promise<IComparison>;
}

export type IDistVariableQuestions = IContributions<IVariableQuestion>;

export const IDistVariableQuestions = new Token<IDistVariableQuestions>(
  'jupyter-dist:IDistVariableQuestions',
  'Buttons that parts and other extensions add to variables.'
);

/** A section of the panel *Variables*, above its table. */
export interface IVariableSection extends IContribution {
  /** Called when the state of the group, or of the panel, has changed; a panel that is hidden should send no requests. */
  render(group: string, isVisible: boolean): ReactElement;
}

export type IDistVariableSections = IContributions<IVariableSection>;

export const IDistVariableSections = new Token<IDistVariableSections>(
  'jupyter-dist:IDistVariableSections',
  'Sections that parts and other extensions add to the panel of variables.'
);
