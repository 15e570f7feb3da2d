/** For specs: a notebook on ranks in two views, with a server and a kernel whose answers the spec sets. */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { INotebookCellExecutor, NotebookModel, StaticNotebook } from '@jupyterlab/notebook';
import { PromiseDelegate } from '@lumino/coreutils';
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { DistError } from '../../services/errors';
import type {
  ExecutionState,
  IErrorBody,
  IExecution,
  IExecutions,
  IGroup,
  IRunRequest,
  Topic
} from '../../services/protocol';
import type { ITopicHandler, ITopicSubscription } from '../../services/channel/topics';
import type { IDistGroups, IDistService } from '../../tokens';
import { codeCells } from '../cells/output/cellruns';
import { checksum } from '../format/checksum';
import { ExecutionsModel } from '../executions/executions';
import { NotebooksModel } from './notebooks';

/** The server: records requests to run cells, and sends the messages that the spec makes. */
class Server {
  readonly requests: IRunRequest[] = [];

  subscribe(topic: Topic, handler: ITopicHandler): ITopicSubscription {
    const { execution: id } = topic as { execution: string };
    this._handlers.add([id, handler]);
    return Object.assign(new DisposableDelegate(() => undefined), {
      resubscribe: () => undefined
    }) as ITopicSubscription;
  }

  submit = async (_: string, request: IRunRequest): Promise<IExecution> => {
    this.requests.push(request);
    if (this.refusal) {
      throw this.refusal;
    }
    if (request.ask_first && request.code.includes('barrier')) {
      throw new DistError({ code: 'needs_all_ranks', message: 'barrier needs all 2 ranks.', hint: '' });
    }
    return this._execution(`e${this.requests.length}`, 'running', request.cell_id);
  };

  cancel = async (): Promise<void> => undefined;
  executions = async (): Promise<IExecutions> => ({ executions: this.listed });
  listed: IExecution[] = [];
  refusal: DistError | null = null;
  connected = true;
  starting = (): null => null;
  restarting: (group: string) => Promise<void> | null = () => null;
  connectionChanged = new Signal<unknown, boolean>({});

  /** An execution of a cell that this page does not know. */
  list(n: number, state: ExecutionState, cell: string, code?: string): void {
    const execution = { ...this._execution(`e${n}`, state, cell), notebook: 'a.ipynb', queued_at: n };
    this.listed.push(code === undefined ? execution : { ...execution, code_checksum: checksum(code) });
  }

  /** The ranks of the n-th execution have printed a text. */
  print(n: number, text: string): void {
    const output = { output_type: 'stream' as const, name: 'stdout' as const, text };
    const items = [{ id: 1, seq: 1, ranks: '0-1', output }];
    for (const [id, handler] of this._handlers) {
      if (id === `e${n}`) {
        handler.receive({ type: 'view', group: 'g', execution_id: id, since: 0, seq: 1, items, removed: [] });
      }
    }
  }

  /** The server cannot send the n-th execution. */
  fail(n: number, error: IErrorBody): void {
    for (const [id, handler] of this._handlers) {
      if (id === `e${n}`) {
        handler.receive({ type: 'error', request: null, error });
      }
    }
  }

  /** The n-th execution has ended. */
  end(n: number): void {
    for (const [id, handler] of this._handlers) {
      if (id === `e${n}`) {
        handler.receive({ type: 'execution', group: 'g', execution: this._execution(id, 'ok', null) });
      }
    }
  }

  private _execution(id: string, state: ExecutionState, cell: string | null = null): IExecution {
    const times = { queued_at: 1, started_at: 1, ended_at: state === 'ok' ? 2 : null };
    return {
      id,
      group: 'g',
      ranks: '0-1',
      state,
      cell_id: cell,
      notebook: null,
      owner: null,
      execution_count: 7,
      statuses: [],
      rank_seconds: {},
      silent: false,
      error: null,
      ...times
    };
  }

  private readonly _handlers = new Set<[string, ITopicHandler]>();
}

/** A kernel and JupyterLab's executor; the spec sets the kernel's answers. */
class Kernel {
  readonly ran: string[] = [];
  readonly results = new Map<string, PromiseDelegate<boolean>>();
  /** The answer to the empty request that the kernel gets after a cell was left to it. */
  nothing = new PromiseDelegate<string>();
  asked = 0;
  readonly statusChanged = new Signal<unknown, string>({});
  readonly kernelChanged = new Signal<unknown, { oldValue: unknown }>({});
  pendingInput = false;
  isTerminating = false;
  readonly session = {
    kernel: {
      requestExecute: () => {
        this.asked += 1;
        return { done: this.nothing.promise.then(status => ({ content: { status } })) };
      }
    }
  };

  runCell = ({ cell }: INotebookCellExecutor.IRunCellOptions): Promise<boolean> => {
    const { id } = cell.model;
    this.ran.push(id);
    const result = new PromiseDelegate<boolean>();
    this.results.set(id, result);
    return result.promise;
  };
}

const GROUP = { id: 'g', name: 'train', world_size: 2, state: 'ready', running: [], queued: [] } as unknown as IGroup;
const find = (name: string): IGroup | null => (['g', 'train'].includes(name) ? GROUP : null);
const groupsChanged = new Signal<unknown, void>({});
const GROUPS = { ready: Promise.resolve(), groups: [GROUP], find, changed: groupsChanged } as unknown as IDistGroups;

/** The group reports these running executions. */
export function report(...running: string[]): void {
  Object.assign(GROUP, { running });
  groupsChanged.emit();
}
const ON_KERNEL = { jupyter_dist: { target: 'kernel' } };

export const turns = async (): Promise<void> => {
  for (let i = 0; i < 30; i++) {
    await Promise.resolve();
  }
};

/** After the task in which *Run All* has run its cells. */
export const later = (): Promise<void> => new Promise(resolve => setTimeout(resolve));

export let server: Server;
export let kernel: Kernel;
export let notebook: NotebookModel;
export let notebooks: NotebooksModel;
export let views: IDisposable[];
/** The cells' widgets. */
export let widgets: Record<string, { model: ICodeCellModel; isDisposed: boolean }>;

/** Open a notebook on ranks, in two views; cells whose id begins with k go to the kernel. */
export function open(sources: Record<string, string>): void {
  notebook.fromJSON({
    nbformat: 4,
    nbformat_minor: 5,
    metadata: { jupyter_dist: { group: 'train', ranks: '0' } },
    cells: Object.entries(sources).map(([id, source]) => ({
      id,
      source,
      cell_type: 'code',
      outputs: [],
      execution_count: null,
      metadata: id.startsWith('k') ? ON_KERNEL : {}
    }))
  });
  widgets = Object.fromEntries(
    codeCells(notebook).map(model => [model.id, { model, isDisposed: false, outputHidden: false }])
  );
  const file = { path: () => 'a.ipynb', savedAt: 0 };
  views = [notebooks.open(notebook, file), notebooks.open(notebook, file)];
}

export function run(id: string): Promise<unknown> {
  return notebooks.executor
    .runCell({
      cell: widgets[id],
      notebook,
      notebookConfig: StaticNotebook.defaultNotebookConfig,
      onCellExecuted: () => undefined,
      onCellExecutionScheduled: () => undefined,
      sessionContext: kernel as unknown as ISessionContext
    } as unknown as INotebookCellExecutor.IRunCellOptions)
    .catch(reason => (reason as Error).message);
}

export const sent = (): string[] => server.requests.map(({ code }) => code);

/** A new server, a new kernel, and a notebook that is not open yet. */
export function begin(): void {
  server = new Server();
  kernel = new Kernel();
  notebook = new NotebookModel();
  const executions = new ExecutionsModel(server as unknown as ConstructorParameters<typeof ExecutionsModel>[0]);
  notebooks = new NotebooksModel({ executions, groups: GROUPS, service: server as unknown as IDistService });
  notebooks.runKernelCellsBy(kernel);
}
