/**
 * A method for each operation of the API. Made by `make generate` from jupyter_dist/protocol/operations: edit that.
 */
import type {
  ICellChecks,
  ICheckQuery,
  IChecksSwitch,
  ICommRequest,
  ICommTaken,
  ICompareRequest,
  IComparison,
  ICompleteRequest,
  ICompletion,
  ICurves,
  IDebugReplies,
  IDebugRequest,
  IDeletedSave,
  IDevices,
  IDrift,
  IEnvironments,
  IExecution,
  IExecutions,
  IFreedBytes,
  IGroup,
  IGroups,
  IHistory,
  IHistoryQuery,
  IInputAnswered,
  IInputRequest,
  IInspectRequest,
  IInspection,
  IInterrupted,
  ILastSaves,
  ILastSavesQuery,
  ILaunchers,
  ILogPage,
  ILogQuery,
  INothing,
  IOwnerRequest,
  IPace,
  IParkRequest,
  IPastSamples,
  IPeekQuery,
  IPeeked,
  IPrepared,
  IPresets,
  IRanksQuery,
  IRanksRequest,
  IRedoRequest,
  IReplaceRequest,
  IResizeRequest,
  IRestoreRequest,
  IRunRequest,
  ISamples,
  ISamplesQuery,
  ISavePreview,
  ISaveRequest,
  ISaves,
  ISavesQuery,
  IScript,
  IScriptRequest,
  IShutdown,
  IStacks,
  IStartAgainRequest,
  IStartOptionRows,
  IStartRequest,
  IStatusQuery,
  IUndoRequest,
  IUndoableCells,
  IVariables,
  IVerdicts,
  IVersions,
  IView,
  IViewQuery
} from '../protocol';

/** A request to the server. */
export interface IApiRequest {
  readonly verb: 'GET' | 'POST' | 'DELETE';
  /** The segments of the path below the API's root. */
  readonly path: readonly (string | number)[];
  readonly query?: object;
  readonly body?: object;
  /** Whether a retry with the same key is not carried out twice. */
  readonly isKeyed?: boolean;
  /** How long the answer may take, besides what the query asks to wait; by default, and at least, ANSWER_SECONDS. */
  readonly answerSeconds?: number;
}

/** How long the answer to most requests may take. */
export const ANSWER_SECONDS = 120;

/** How long a change is requested whose answer is lost, and with which key: the server does not carry it out twice. */
export interface IRetries {
  readonly key: string;
  readonly forMs: number;
  /** Whether it was sent before, with the same key, and not answered. */
  readonly isUnanswered: boolean;
}

/** The operations of the API. Promises reject with a DistError. */
export abstract class Api {
  /** Make a request; resolves with the answer. */
  protected abstract ask<T>(request: IApiRequest, retries?: IRetries): Promise<T>;
  /** The URL of a file that can be downloaded. */
  protected abstract urlOf(...path: (string | number)[]): string;

  /** Return the versions of the server, of its protocol and of its API. */
  versions(): Promise<IVersions> {
    return this.ask({ verb: 'GET', path: [] });
  }

  /** Return the description of the API. */
  openapi(): Promise<object> {
    return this.ask({ verb: 'GET', path: ['openapi.json'] });
  }

  /** Return the environments that groups can run in. */
  environments(): Promise<IEnvironments> {
    return this.ask({ verb: 'GET', path: ['environments'] });
  }

  /** Keep an agent with torch imported ready for the next start in an environment. */
  warm(name: string): Promise<INothing> {
    return this.ask({ verb: 'POST', path: ['environments', name, 'warm'], body: {} });
  }

  /** Return the accelerators and the host, and how they are used. */
  devices(): Promise<IDevices> {
    return this.ask({ verb: 'GET', path: ['devices'] });
  }

  /** Return the launchers that can start the nodes of a group, with what is free. */
  launchers(): Promise<ILaunchers> {
    return this.ask({ verb: 'GET', path: ['launchers'] });
  }

  /** Return the presets: named options of a start, which an administrator or the user has written. */
  presets(): Promise<IPresets> {
    return this.ask({ verb: 'GET', path: ['presets'] });
  }

  /** Return the options of a start that a form can show by their rows alone, with the server's defaults. Where a group runs is not among them: see environments, devices, launchers. */
  startOptions(): Promise<IStartOptionRows> {
    return this.ask({ verb: 'GET', path: ['start_options'] });
  }

  /** Return the processes that are kept to make the next start faster, with their memory. */
  prepared(): Promise<IPrepared> {
    return this.ask({ verb: 'GET', path: ['prepared'] });
  }

  /** Return all groups, oldest first, including dead ones, whose logs can still be read. */
  groups(): Promise<IGroups> {
    return this.ask({ verb: 'GET', path: ['groups'] });
  }

  /** Start a group; return while its ranks are starting. */
  start(body: IStartRequest = {}, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups'], body, isKeyed: true }, retries);
  }

  /** Return the state of the group, at once or after it has left a state. */
  status(group: string, query: IStatusQuery = {}): Promise<IGroup> {
    return this.ask({ verb: 'GET', path: ['groups', group], query });
  }

  /** Return the verdicts on cells that cannot end or are slow, and what happened afterwards. Each has its witnesses. A refuted one is a fault of jupyter_dist: please report it with this answer. */
  verdicts(group: string): Promise<IVerdicts> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'verdicts'] });
  }

  /** End the group; return a sentence about each process that had to be killed. */
  shutdown(group: string): Promise<IShutdown> {
    return this.ask({ verb: 'DELETE', path: ['groups', group] });
  }

  /** Add an owner to a group that ends with processes: the group lives at least as long as this process. */
  own(group: string, body: IOwnerRequest, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'owners'], body, isKeyed: true }, retries);
  }

  /** Interrupt running cells; the ranks keep their variables. */
  interrupt(group: string, body: IRanksRequest = {}): Promise<IInterrupted> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'interrupt'], body });
  }

  /** Restart all ranks in new processes; cells wait for them. */
  restart(group: string, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'restart'], body: {}, isKeyed: true }, retries);
  }

  /** Start a group that has ended, with the options of its start. The new group takes the name of the earlier group. Its launcher submits another job. Values of `env` are kept in memory alone: they are to be given again when the agent and the server have ended since. */
  startAgain(group: string, body: IStartAgainRequest = {}, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'start_again'], body, isKeyed: true }, retries);
  }

  /** Start new processes for dead ranks; the others keep their variables. `replaced` of the group has the outcome, once its state is no longer `restarting`. */
  replace(group: string, body: IReplaceRequest = {}, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'replace'], body, isKeyed: true }, retries);
  }

  /** Re-create the process group in the same processes, which keep all variables. */
  reform(group: string, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'reform'], body: {}, isKeyed: true }, retries);
  }

  /** Collect garbage and empty the device caches of idle ranks; return the freed bytes by rank. */
  emptyCache(group: string, body: IRanksRequest = {}): Promise<IFreedBytes> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'empty-cache'], body });
  }

  /** Return the last minutes of memory samples, newest last. Samples are only taken while a client follows the memory. */
  lastSamples(group: string): Promise<ISamples> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'memory'] });
  }

  /** Return a page of the last hour's memory samples, with the places where ranks were seen to wait. Samples are only taken while a client follows the memory. */
  samples(group: string, query: ISamplesQuery = {}): Promise<IPastSamples> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'samples'], query });
  }

  /** Return the Python stacks of all ranks, equal ones once. Ranks that do not answer within 2 s are `unknown`. */
  stacks(group: string): Promise<IStacks> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'stacks'] });
  }

  /** Return the last cells of all clients that ran on this group, oldest first, with their code. Cells that a program ran silently, and calls, which are no code of users, are left out. */
  history(group: string, query: IHistoryQuery = {}): Promise<IHistory> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'history'], query });
  }

  /** Kill a rank that cannot be interrupted; the others keep their variables. Then `replace` it. */
  kill(group: string, rank: number, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'ranks', rank, 'kill'], body: {}, isKeyed: true }, retries);
  }

  /** Send a message to a widget of a rank, which handles it when no cell runs there. The answer does not wait for the code that handles the message. */
  sendComm(group: string, rank: number, body: ICommRequest): Promise<ICommTaken> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'ranks', rank, 'comms'], body });
  }

  /** Return the last records of a rank's log, or the last ones before a given record. */
  logs(group: string, rank: number, query: ILogQuery = {}): Promise<ILogPage> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'ranks', rank, 'log'], query });
  }

  /** Download the full log of a rank. */
  logFileUrl(group: string, rank: number): string {
    return this.urlOf('groups', group, 'ranks', rank, 'log', 'download');
  }

  /** Return the executions of the group, newest last. */
  executions(group: string): Promise<IExecutions> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'executions'] });
  }

  /** Queue a cell on ranks, and return its execution. */
  submit(group: string, body: IRunRequest, retries?: IRetries): Promise<IExecution> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'executions'], body, isKeyed: true }, retries);
  }

  /** Return an execution and its folded outputs, at once or after it has ended. */
  view(group: string, executionId: string, query: IViewQuery = {}): Promise<IView> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'executions', executionId], query });
  }

  /** Cancel a queued execution, interrupt a running one. */
  cancel(group: string, executionId: string): Promise<IExecution> {
    return this.ask({ verb: 'DELETE', path: ['groups', group, 'executions', executionId] });
  }

  /** Answer the question of an execution's ranks; the first answer to a question counts. */
  answerInput(group: string, executionId: string, body: IInputRequest): Promise<IInputAnswered> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'executions', executionId, 'input'], body });
  }

  /** Run a running cell, as it was submitted, on more ranks; ranks that have it already are skipped. */
  extend(group: string, executionId: string, body: IRanksRequest = {}): Promise<IExecution> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'executions', executionId, 'extend'], body });
  }

  /** Return the checks of a cell: errors of its training that its ranks have proved. Ranks are compared in the first steps of each optimizer, and then in ever fewer. */
  checks(group: string, executionId: string): Promise<ICellChecks> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'executions', executionId, 'checks'] });
  }

  /** Compare all that a model trains with between ranks, whole and now. Parameters, buffers, optimizers, samplers and random states. Ranks that run a cell are not asked. */
  check(group: string, query: ICheckQuery): Promise<IComparison> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'check'], query });
  }

  /** Switch the checks of a group's training on or off. */
  setChecks(group: string, body: IChecksSwitch): Promise<IChecksSwitch> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'checks'], body });
  }

  /** Return the curves of an execution: numbers with a name that recur in the output of its ranks. All lines so far are read, including lines that the view leaves out. */
  curves(group: string, executionId: string): Promise<ICurves> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'executions', executionId, 'curves'] });
  }

  /** Download the curves of an execution as comma-separated values. */
  curvesFileUrl(group: string, executionId: string): string {
    return this.urlOf('groups', group, 'executions', executionId, 'curves', 'download');
  }

  /** Send a request to the debuggers of ranks, and return their replies. The first is `initialize`, which imports debugpy. `events` waits for the next events of a rank. */
  debug(group: string, body: IDebugRequest): Promise<IDebugReplies> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'debug'], body });
  }

  /** Return the versions of cells that ran on ranks since the last restart, and which ranks missed them. */
  drift(group: string): Promise<IDrift> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'drift'] });
  }

  /** Complete code at the cursor (in characters; default: the end) on a rank: Jupyter's complete_reply. Attributes are completed while the rank is idle, only variables while it is busy. */
  complete(group: string, rank: number, body: ICompleteRequest): Promise<ICompletion> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'ranks', rank, 'complete'], body });
  }

  /** Describe the name at the cursor, as `name?` does on a rank; as `name??` with `detail=1`. A rank that runs a cell answers at once: with `busy`, and only for functions, classes and modules. */
  inspect(group: string, rank: number, body: IInspectRequest): Promise<IInspection> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'ranks', rank, 'inspect'], body });
  }

  /** Give the devices of an idle group back; its ranks keep all variables. The next cell resumes it. */
  park(group: string, body: IParkRequest = {}, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'park'], body, isKeyed: true }, retries);
  }

  /** Bring the tensors of a parked group back to its devices; a cell does so, too. */
  resume(group: string, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'resume'], body: {}, isKeyed: true }, retries);
  }

  /** Return the values of names on ranks, also while these run a cell. Local names come before names of cells. Of devices only shapes are read; no code of the user runs. */
  peekValues(group: string, query: IPeekQuery = {}): Promise<IPeeked> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'values'], query });
  }

  /** Download the trace of a profiled cell. */
  traceFileUrl(group: string, executionId: string): string {
    return this.urlOf('groups', group, 'executions', executionId, 'trace');
  }

  /** Change the number of ranks; ranks that stay keep their processes and variables. */
  resize(group: string, body: IResizeRequest, retries?: IRetries): Promise<IGroup> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'resize'], body, isKeyed: true }, retries);
  }

  /** Save the variables of all ranks, when no cell runs. The answer is an execution on all ranks, which waits for cells as a cell does. It ends with the save. */
  save(group: string, body: ISaveRequest = {}, retries?: IRetries): Promise<IExecution> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'saves'], body, isKeyed: true }, retries);
  }

  /** Give all ranks the variables of a save, on all ranks or on none. The answer is an execution on all ranks, which waits for cells as a cell does. */
  restore(group: string, body: IRestoreRequest, retries?: IRetries): Promise<IExecution> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'restore'], body, isKeyed: true }, retries);
  }

  /** Return the names that a save would have now, and the names that cannot be saved. */
  previewSave(group: string): Promise<ISavePreview> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'saves', 'preview'] });
  }

  /** Return the saves in a folder, newest first, and why this group cannot restore some of them. Another folder than the server's takes the right to execute. */
  saves(group: string, query: ISavesQuery = {}): Promise<ISaves> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'saves'], query });
  }

  /** Return the saves in a folder, newest first. Another folder than the server's takes the right to execute. */
  allSaves(query: ISavesQuery = {}): Promise<ISaves> {
    return this.ask({ verb: 'GET', path: ['saves'], query });
  }

  /** Return the newest save of each group and number of ranks, also of groups that have ended. */
  lastSaves(query: ILastSavesQuery = {}): Promise<ILastSaves> {
    return this.ask({ verb: 'GET', path: ['last-saves'], query });
  }

  /** Delete a save, and the data that no other save of its folder has. */
  deleteSave(save: string, query: ISavesQuery = {}): Promise<IDeletedSave> {
    return this.ask({ verb: 'DELETE', path: ['saves', save], query, answerSeconds: 300 });
  }

  /** Return the cells of a notebook that ran on ranks as a script for torchrun. */
  script(group: string, body: IScriptRequest = {}): Promise<IScript> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'script'], body });
  }

  /** Return where the time of a cell goes, or went: by rank, by line and by step, and why it is slow. Cells that run for less than four seconds are not watched. */
  pace(group: string, executionId: string): Promise<IPace> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'executions', executionId, 'pace'] });
  }

  /** Return the cells that can be undone now, newest first, with their cost. */
  undoable(group: string): Promise<IUndoableCells> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'undoable'] });
  }

  /** Undo cells that kept undo, on all ranks that ran them; return the execution that does it. It waits its turn as a cell does. Variables get the values of before the cells, in the same objects. Files, prints, the network and other processes are not undone. */
  undo(group: string, body: IUndoRequest = {}, retries?: IRetries): Promise<IExecution> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'undo'], body, isKeyed: true }, retries);
  }

  /** Give variables what undone cells had left in them; return the execution that does it. It waits its turn as a cell does. No code runs. It is possible until a cell runs that changes something, or that keeps no undo. */
  redo(group: string, body: IRedoRequest = {}, retries?: IRetries): Promise<IExecution> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'redo'], body, isKeyed: true }, retries);
  }

  /** Return the variables of ranks, with their differences; ranks that run a cell are not asked. */
  variables(group: string, query: IRanksQuery = {}): Promise<IVariables> {
    return this.ask({ verb: 'GET', path: ['groups', group, 'variables'], query });
  }

  /** Return where, on which ranks and by how much a variable differs, and what was not compared. Checksums are compared, then the elements of tensors that differ, a megabyte at a time and 64 MiB in all. */
  compare(group: string, body: ICompareRequest): Promise<IComparison> {
    return this.ask({ verb: 'POST', path: ['groups', group, 'compare'], body });
  }
}
