/**
 * What JupyterLab's code console asks of a session, answered for a group. There is no kernel: cells go to an executor,
 * and what is left are the banner, the language and the history.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { KernelMessage } from '@jupyterlab/services';
import { CodeConsole } from '@jupyterlab/console';
import { Signal } from '@lumino/signaling';

export interface IGroupSessionOptions {
  banner: string;
  /** The code of the cells that ran on the group, oldest first. */
  history(): Promise<string[]>;
}

/** Of a session context, the console reads these. */
type Asked = Pick<ISessionContext, 'kernelChanged' | 'statusChanged'> & { session: object };

export class GroupSession {
  constructor(options: IGroupSessionOptions) {
    const { banner } = options;
    const language_info = { name: 'python', mimetype: 'text/x-python', codemirror_mode: 'python' };
    const kernel = {
      status: 'idle',
      info: Promise.resolve({ status: 'ok', banner, language_info }),
      requestHistory: async () => historyReply(await options.history())
    };
    const asked: Asked = {
      session: { kernel },
      kernelChanged: this._historyChanged as unknown as ISessionContext['kernelChanged'],
      statusChanged: new Signal(this) as unknown as ISessionContext['statusChanged']
    };
    this.context = asked as ISessionContext;
  }

  readonly context: ISessionContext;

  /** Read the history again: others run cells on the group, too. */
  refreshHistory(): void {
    this._historyChanged.emit();
  }

  dispose(): void {
    Signal.clearData(this._historyChanged);
  }

  private readonly _historyChanged = new HistorySignal({});
}

/** The console's history reads it again at this signal. The console itself would clear its cells: it is not connected. */
class HistorySignal extends Signal<object, void> {
  connect(slot: (sender: object) => void, thisArg?: unknown): boolean {
    return thisArg instanceof CodeConsole ? true : super.connect(slot, thisArg);
  }
}

function historyReply(cells: string[]): KernelMessage.IHistoryReplyMsg {
  const history = cells.map((code, index) => [0, index + 1, code]);
  return { content: { status: 'ok', history } } as unknown as KernelMessage.IHistoryReplyMsg;
}
