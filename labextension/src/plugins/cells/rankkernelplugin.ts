/**
 * A notebook whose kernel is *Ranks* (decision 18): its cells go to the kernel
 * as any notebook's do, and the kernel runs them on its group. This plugin
 * sends the kernel two facts: that the page shows the output of ranks, so that
 * the kernel sends one output with all ranks and no text for other clients;
 * and the notebook's path, so that a reloaded page finds its running cells.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { Views } from '../../model/notebooks/views';
import { IDistExecutions, IFollower } from '../../tokens';

/** What the kernel calls itself, and the target of its comm. */
const IMPLEMENTATION = 'jupyter_dist';

export const rankKernelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:rank-kernel',
  description: 'Tells the kernel Ranks that this page shows the output of ranks.',
  autoStart: true,
  requires: [INotebookTracker, IDistExecutions],
  activate: (app: JupyterFrontEnd, tracker: INotebookTracker, executions: IDistExecutions): void => {
    const { contents } = app.serviceManager;
    // The kernel knows one comm of a page: views of one notebook share it.
    const views = new Views<NotebookPanel['context']>();
    const greet = (context: NotebookPanel['context']): Greeter => {
      const greeter = new Greeter(executions, () => contents.localPath(context.path));
      const { sessionContext } = context;
      sessionContext.kernelChanged.connect(greeter.onKernel, greeter);
      sessionContext.statusChanged.connect(greeter.onStatus, greeter);
      context.pathChanged.connect(() => greeter.greet(sessionContext), greeter);
      greeter.greet(sessionContext);
      return greeter;
    };
    const open = ({ context, disposed }: NotebookPanel): void => {
      const opened = views.open(context, () => greet(context));
      disposed.connect(() => opened.dispose(), app);
    };
    tracker.forEach(open);
    tracker.widgetAdded.connect((_, panel) => open(panel), app);
  }
};

/** The kernel's message about a cell that it runs. */
interface IRunning {
  group: string;
  execution: string;
}

class Greeter implements IDisposable {
  constructor(executions: IDistExecutions, path: () => string) {
    this._executions = executions;
    this._path = path;
  }

  onKernel(context: ISessionContext): void {
    this.greet(context);
  }

  /** A process that has just started does not know this page. */
  onStatus(context: ISessionContext, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'starting') {
      this._greeted = null;
      this._release();
    } else if (status === 'idle' && this._greeted === null) {
      this.greet(context);
    }
  }

  greet({ session }: ISessionContext): void {
    const kernel = session?.kernel;
    if (!kernel) {
      return;
    }
    this._greeted = kernel.id;
    kernel.info
      .then(({ implementation }) => {
        if (implementation === IMPLEMENTATION && !kernel.isDisposed && !this.isDisposed && kernel.handleComms) {
          this._comm?.dispose();
          this._comm = kernel.createComm(IMPLEMENTATION);
          this._comm.onMsg = ({ content }) => this._follow(content.data as unknown as IRunning);
          this._comm.open({ path: this._path() });
        }
      })
      .catch(() => undefined); // it has ended: the next one is greeted
  }

  isDisposed = false;

  dispose(): void {
    this.isDisposed = true;
    Signal.clearData(this);
    this._release();
    this._comm?.dispose();
    this._comm = null;
  }

  /** Follow a cell that the kernel runs, to its end: the output is live, and asks for input. */
  private _follow({ group, execution }: IRunning): void {
    const follower = this._executions.follow(group, execution);
    this._followers.add(follower);
    void follower.followed.ended.then(() => {
      follower.dispose();
      this._followers.delete(follower);
    });
  }

  private _release(): void {
    this._followers.forEach(follower => follower.dispose());
    this._followers.clear();
  }

  private _comm: Kernel.IComm | null = null;
  private readonly _executions: IDistExecutions;
  private _followers = new Set<IFollower>();
  private _greeted: string | null = null;
  private readonly _path: () => string;
}
