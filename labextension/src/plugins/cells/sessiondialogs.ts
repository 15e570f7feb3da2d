/**
 * JupyterLab's restart commands (menu, toolbar, keys; with Run All, with Clear)
 * and its kernel dialog all use one object: the session dialogs. This plugin
 * wraps it for notebooks on ranks. The object stays JupyterLab's own, so that
 * nothing changes for other notebooks, or if this plugin fails.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ISessionContext, ISessionContextDialogs, showDialog } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { codeCells } from '../../model/cells/output/cellruns';
import { keepKernelless } from '../../model/notebooks/kernelless';
import { getNotebookTarget, resolveTarget } from '../../model/targets/target';
import type { IGroup } from '../../services/protocol';
import { IDistGroups, IDistNotebooks, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';

/** A restart ends the running cells; the page learns of it at once if it is connected. */
const END_SECONDS = 15;

export const sessionDialogsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:session-dialogs',
  description:
    'Makes the restart commands of a notebook on ranks restart the ranks, and skips the kernel dialog there.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistNotebooks, INotebookTracker],
  optional: [ISessionContextDialogs, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    notebooks: IDistNotebooks,
    tracker: INotebookTracker,
    dialogs: ISessionContextDialogs | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    tracker.forEach(keepKernelless);
    tracker.widgetAdded.connect((_, panel) => keepKernelless(panel));
    if (dialogs) {
      const ranks = new RankRestart(service, groups, notebooks, trans);
      const restart = dialogs.restart.bind(dialogs);
      dialogs.restart = async (context, options) => {
        const panel = tracker.find(({ sessionContext }) => sessionContext === context);
        // With options it comes from the debugger, which means the kernel.
        return panel && !options && ranks.isMeant(panel) ? ranks.ask(panel) : restart(context, options);
      };
    }
  }
};

/** Restarts in a notebook whose cells run on ranks. */
class RankRestart {
  constructor(service: IDistService, groups: IDistGroups, notebooks: IDistNotebooks, trans: TranslationBundle) {
    this._service = service;
    this._groups = groups;
    this._notebooks = notebooks;
    this._trans = trans;
  }

  isMeant(panel: NotebookPanel): boolean {
    return groupNames(panel).length > 0;
  }

  /** Ask, and restart what was confirmed; returns whether all was restarted. */
  async ask(panel: NotebookPanel): Promise<boolean> {
    const names = groupNames(panel);
    const groups = names.map(name => this._groups.find(name)).filter(isUp);
    const { sessionContext: context } = panel;
    if (groups.length === 0) {
      await this._sayThereIsNone(names);
      return false;
    }
    const answer = await showDialog({
      title: this._title(groups),
      body: this._trans.__('Their variables will be lost.'),
      ...(context.session?.kernel ? { checkbox: this._kernelBox(panel) } : {}),
      buttons: [
        Dialog.cancelButton({ label: this._trans.__('Cancel') }),
        Dialog.warnButton({ label: this._trans.__('Restart') })
      ]
    });
    return answer.button.accept && this._restart(panel, groups, answer.isChecked ? context : null);
  }

  private _title(groups: IGroup[]): string {
    const trans = this._trans;
    const [first, ...more] = groups.map(({ name, world_size: size }) =>
      trans._n("the rank of '%2'", "the %1 ranks of '%2'", size, name)
    );
    return more.length === 0 ? trans.__('Restart %1?', first) : trans.__('Restart %1 and %2?', first, more.join(', '));
  }

  private _kernelBox(panel: NotebookPanel): Partial<Dialog.ICheckbox> {
    const model = panel.content.model!;
    const usesKernel = codeCells(model).some(cell => !resolveTarget(model, cell));
    return {
      label: this._trans.__('Also restart the kernel'),
      caption: this._trans.__('The variables of the kernel will also be lost.'),
      checked: usesKernel
    };
  }

  private async _sayThereIsNone(names: string[]): Promise<void> {
    const trans = this._trans;
    await showDialog({
      title: trans.__('No ranks to restart'),
      body: trans.__(
        "Group '%1' is not running. Choose another group in the toolbar, or start one. To restart the kernel, choose Kernel in the toolbar.",
        names.join(', ')
      ),
      buttons: [Dialog.okButton({ label: trans.__('Close') })]
    });
  }

  private async _restart(panel: NotebookPanel, groups: IGroup[], context: ISessionContext | null): Promise<boolean> {
    // A kernel cancels its queue when it is restarted: so is what waits in the page, for the kernel or for ranks.
    this._notebooks.abortWaiting(panel.content.model!);
    try {
      await Promise.all([...groups.map(group => this._service.restart(group.id)), context?.restartKernel()]);
      // New cells wait until the ranks are up; they must not be queued after the cells that were ended.
      await this._ended(panel);
      return true;
    } catch (reason) {
      notifyError(reason);
      return false;
    }
  }

  private async _ended(panel: NotebookPanel): Promise<void> {
    const isRunning = (): boolean => this._notebooks.isRunning(panel.content.model!);
    const deadline = Date.now() + END_SECONDS * 1000;
    while (!panel.isDisposed && isRunning()) {
      if (Date.now() > deadline) {
        throw new Error(
          this._trans.__(
            'The ranks were restarted, but the server has not reported the end of the cells that were running.'
          )
        );
      }
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  }

  private readonly _service: IDistService;
  private readonly _groups: IDistGroups;
  private readonly _notebooks: IDistNotebooks;
  private readonly _trans: TranslationBundle;
}

/** The groups that the notebook's cells run on: the notebook's group, and the groups that single cells choose. */
function groupNames(panel: NotebookPanel): string[] {
  const { model } = panel.content;
  if (!model) {
    return [];
  }
  const own = getNotebookTarget(model);
  const cells = codeCells(model).map(cell => resolveTarget(model, cell));
  return [...new Set([own, ...cells].flatMap(target => (target ? [target.group] : [])))];
}

function isUp(group: IGroup | null): group is IGroup {
  return group !== null && group.state !== 'lost';
}
