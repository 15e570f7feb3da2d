/** Cells on ranks: what runs, what was said, what the notebook keeps. */
import type { IOutput } from '@jupyterlab/nbformat';
import type { IErrorBody, RankSet } from './groups';

export type ExecutionState =
  | 'queued'
  | 'running'
  | 'ok'
  | 'error'
  | 'interrupted'
  | 'aborted'
  | 'lost';

/** What one rank has to say of an execution. */
export type RankStatus = ExecutionState;

/** The states an execution never leaves. */
export const FINAL_STATES: ReadonlySet<ExecutionState> = new Set([
  'ok',
  'error',
  'interrupted',
  'aborted',
  'lost'
] as const);

export interface IRankStatus {
  ranks: RankSet;
  status: RankStatus;
  seconds: number | null;
}

export interface IExecution {
  id: string;
  group: string;
  ranks: RankSet;
  state: ExecutionState;
  code?: string;
  cell_id: string | null;
  notebook: string | null;
  owner: string | null;
  execution_count: number | null;
  queued_at: number;
  started_at: number | null;
  ended_at: number | null;
  statuses: IRankStatus[];
  error: IErrorBody | null;
}

/** The body of POST .../executions. */
export interface IRunRequest {
  code: string;
  ranks?: string;
  cell_id?: string;
  notebook?: string;
  stop_on_error?: boolean;
  silent?: boolean;
  /** Ranks whose device memory it changed empty their cache when it has ended. */
  empty_cache?: boolean;
  /**
   * The execution before it in a Run All: if that one has failed by now, this
   * one is aborted as if it had been queued in time.
   */
  after?: string;
}

export interface IElided {
  bytes: number;
  lines: number;
}

/** What some ranks said: an nbformat output, or what was left out. */
export interface IViewItem {
  id: number;
  seq: number;
  ranks: RankSet;
  output?: IOutput;
  elided?: IElided;
}

/** An item as a `view` message carries it. */
export interface IViewChange extends IViewItem {
  /** The id of the item before it; null: it is the first. */
  after?: number | null;
  /** Text to add to the item's stream, instead of `output`. */
  append?: string;
}

export interface IView {
  execution: IExecution;
  seq: number;
  items: IViewItem[];
}

/** The MIME type of what a rank cell saves in the notebook. */
export const RANKS_MIME = 'application/vnd.jupyter-dist.ranks+json';

export interface ISavedItem {
  ranks: RankSet;
  output?: IOutput;
  elided?: IElided;
}

/** The MIME bundle of a rank cell. */
export interface IRanksBundle {
  version: 1;
  group: { id: string; name: string; world_size: number };
  execution_id: string;
  ranks: RankSet;
  state: ExecutionState;
  statuses: IRankStatus[];
  started_at: number | null;
  ended_at: number | null;
  items: ISavedItem[];
  /** Why it was lost or aborted. */
  error?: IErrorBody;
}

/** What fits at a cursor, in the words of Jupyter's complete_reply; positions are in characters. */
export interface ICompletion {
  matches: string[];
  cursor_start: number;
  cursor_end: number;
}
