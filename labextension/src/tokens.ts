/**
 * What the plugins provide to each other, and what other extensions can
 * build on: interfaces, tokens, command ids.
 */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type {
  INotebookCellExecutor,
  INotebookModel
} from '@jupyterlab/notebook';
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import type {
  IErrorBody,
  IExecution,
  IGroup,
  IRunRequest,
  ISavedItem,
  IViewItem
} from './services/protocol';
import type { IService } from './services/service';

/** Commands that one plugin registers and another runs. */
export const CommandIDs = {
  /** Start a group: opens the form; with args `{notebook: path}` resolves with the group that was started for it, or null. */
  startGroup: 'jupyter-dist:start-group',
  /** Open the rank output panel; args: `{group: id or name, rank?: number}`. */
  openLog: 'jupyter-dist:open-log',
  /** Interrupt the ranks of the current notebook's group, or `{group, ranks?}`. */
  interrupt: 'jupyter-dist:interrupt',
  /** Restart the ranks of the current notebook's group, or `{group}`. */
  restart: 'jupyter-dist:restart',
  /** Give dead ranks new processes; args: `{group}`. */
  replace: 'jupyter-dist:replace',
  /** Kill one rank; the others are left alone; args: `{group, rank}`. */
  killRank: 'jupyter-dist:kill-rank',
  /** Form the process group anew in the same processes; args: `{group}`. */
  reform: 'jupyter-dist:reform',
  /** Shut a group down; args: `{group}`. */
  shutdown: 'jupyter-dist:shutdown',
  /** Shut all groups down. */
  shutdownAll: 'jupyter-dist:shutdown-all',
  /** Empty the ranks' memory caches; args: `{group}`. */
  emptyCache: 'jupyter-dist:empty-cache',
  /** Show the Ranks sidebar. */
  showSidebar: 'jupyter-dist:show-sidebar',
  /** Give the selected cells a target of their own. */
  overrideCell: 'jupyter-dist:override-cell',
  /** Focus the rank picker of the current notebook. */
  focusPicker: 'jupyter-dist:focus-picker'
} as const;

/** The server, as one object: REST and the WebSocket. */
export type IDistService = IService;

export const IDistService = new Token<IDistService>(
  'jupyter-dist:IDistService',
  'The jupyter_dist server: its REST API and its WebSocket.'
);

/** All groups of the server, always current. */
export interface IDistGroups {
  /** Resolves when the groups were first heard of. */
  readonly ready: Promise<void>;
  /** The groups by name: nothing that happens to one moves it. Snapshots: never change them. */
  readonly groups: readonly IGroup[];
  /** Whether the WebSocket is open; if not, `groups` is what was last known. */
  readonly connected: boolean;
  /** Emitted when a group came, went or changed, and with the connection. */
  readonly changed: ISignal<IDistGroups, void>;
  /** The group of that name, else of that id, else null. */
  find(reference: string): IGroup | null;
}

export const IDistGroups = new Token<IDistGroups>(
  'jupyter-dist:IDistGroups',
  'All groups of ranks on the server, with their state.'
);

/** What changed in a followed execution. */
export interface IFollowedChange {
  /** The execution's state or its statuses. */
  execution: boolean;
  /** The items. */
  items: boolean;
}

/** An execution whose view is followed live; shared by all who follow it. */
export interface IFollowedExecution {
  readonly group: string;
  readonly id: string;
  /** Null until the server was heard. */
  readonly execution: IExecution | null;
  /** The items in order. Snapshots: never change them. */
  readonly items: readonly IViewItem[];
  /** Why it cannot be followed, e.g. the server no longer knows it. */
  readonly error: IErrorBody | null;
  /** Whether the execution is final (or unknown) and all items are here. */
  readonly isEnded: boolean;
  readonly changed: ISignal<IFollowedExecution, IFollowedChange>;
  /** Resolves when isEnded. */
  readonly ended: Promise<void>;
}

/** Holds a followed execution; dispose to let go. */
export interface IFollower extends IDisposable {
  readonly followed: IFollowedExecution;
}

/** Cells on ranks: run them, follow what they say. */
export interface IDistExecutions {
  /** Emitted with an execution's id when its following begins. */
  readonly followed: ISignal<IDistExecutions, string>;
  /** Submit code; resolves when the server has queued it. */
  run(group: string, request: IRunRequest): Promise<IExecution>;
  /** Whether it was submitted from this page: its output may do what the page's user may. */
  isOwn(execution: string): boolean;
  /** Cancel if queued, interrupt if running. */
  cancel(group: string, execution: string): Promise<void>;
  /** Follow an execution's view. */
  follow(group: string, execution: string): IFollower;
  /** The followed execution of that id, if somebody follows it now. */
  find(execution: string): IFollowedExecution | null;
}

export const IDistExecutions = new Token<IDistExecutions>(
  'jupyter-dist:IDistExecutions',
  'Runs code on ranks and follows their output.'
);

/** The notebooks that are open, and what their cells run on ranks. */
export interface IDistNotebooks {
  /** Emitted when a cell begins or ends on ranks, and when one that runs is deleted or comes back. */
  readonly changed: ISignal<IDistNotebooks, void>;
  /** Whether cells empty the device cache of the ranks whose memory they changed. */
  emptyCache: boolean;
  /** Runs cells: on ranks where the notebook says so, else on the kernel. */
  readonly executor: INotebookCellExecutor;
  /** Have kernel cells run by another executor than JupyterLab's own. */
  runKernelCellsBy(executor: INotebookCellExecutor): void;
  /**
   * A notebook was opened and its content is here. Its cells are shown what
   * they ran and run; dispose when it is closed.
   */
  open(notebook: INotebookModel, file: INotebookFile): IDisposable;
  /** Interrupt what the notebook's cells run on ranks. */
  interrupt(notebook: INotebookModel): Promise<void>;
  /** Whether cells of the notebook, deleted ones too, run or wait on ranks. */
  isRunning(notebook: INotebookModel): boolean;
  /** What deleted cells still run. */
  readonly deleted: readonly IDeletedRun[];
}

/** A cell that was deleted, and runs on. */
export interface IDeletedRun {
  /** The execution. */
  readonly id: string;
  /** The name of the group. */
  readonly group: string;
  readonly ranks: string;
  interrupt(): Promise<void>;
}

/** Where a notebook lies on the server. */
export interface INotebookFile {
  /** The path now: it can be renamed. */
  path(): string;
  /** When it was last saved, in seconds since the epoch. */
  readonly savedAt: number;
}

export const IDistNotebooks = new Token<IDistNotebooks>(
  'jupyter-dist:IDistNotebooks',
  'The open notebooks and the cells they run on ranks.'
);

/** Whether cells of this page can run on ranks at all. */
export interface IDistGuard {
  /** Why they cannot; null: they can. */
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
  /** Where it stands among others: low numbers first; 100 where it is left out. */
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

/** A badge in the corner of code cells, beside the one that says where a cell runs. */
export interface ICellBadge extends IContribution {
  /** What it says of a cell; null: nothing. Asked again when the cell's metadata changed, or `changed` was emitted. */
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
