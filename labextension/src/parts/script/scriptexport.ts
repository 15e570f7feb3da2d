/** Writes the cells that ran on ranks as a script beside the notebook, and opens it. */
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IGroup, IScript, IScriptRequest } from '../../services/protocol';
import type { IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { withWhole } from '../../widgets/notices/whole';

const SHORT_MS = 4000;

export class ScriptExport {
  constructor(
    service: IDistService,
    contents: Contents.IManager,
    tracker: INotebookTracker | null,
    open: (path: string) => Promise<unknown>,
    trans: TranslationBundle
  ) {
    this._service = service;
    this._contents = contents;
    this._tracker = tracker;
    this._open = open;
    this._trans = trans;
  }

  /** Export the current notebook; without one, the only notebook that ran cells on the group. */
  async run(group: IGroup): Promise<void> {
    try {
      const panel = this._tracker?.currentWidget ?? null;
      const request = panel ? this._request(panel) : {};
      const script = await this._service.script(group.id, request);
      const path = scriptPath(request.notebook ?? script.notebook ?? group.name);
      if (await this._mayWrite(path)) {
        await this._contents.save(path, { type: 'file', format: 'text', content: script.script });
        this._report(script, path);
        await this._open(path);
      }
    } catch (reason) {
      notifyError(reason);
    }
  }

  private _request(panel: NotebookPanel): IScriptRequest {
    return { notebook: this._contents.localPath(panel.context.path), cells: JSON.stringify(codeCells(panel)) };
  }

  private async _mayWrite(path: string): Promise<boolean> {
    if (!(await this._exists(path))) {
      return true;
    }
    const trans = this._trans;
    const answer = await showDialog({
      title: trans.__('Replace %1?', PathExt.basename(path)),
      body: trans.__('The file exists. Its content will be lost.'),
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Replace') })]
    });
    return answer.button.accept;
  }

  private async _exists(path: string): Promise<boolean> {
    try {
      await this._contents.get(path, { content: false });
      return true;
    } catch (reason) {
      if (reason instanceof ServerConnection.ResponseError && reason.response.status === 404) {
        return false;
      }
      throw reason;
    }
  }

  private _report(script: IScript, path: string): void {
    const done = this._trans._n('Wrote %1 cell to %2.', 'Wrote %1 cells to %2.', script.cells, path);
    const message = [done, ...script.notes].join(' ');
    // The notes are in the file, too, which is opened.
    Notification.emit(message, script.notes.length ? 'warning' : 'info', {
      autoClose: SHORT_MS,
      actions: withWhole(message)
    });
  }

  private readonly _service: IDistService;
  private readonly _contents: Contents.IManager;
  private readonly _tracker: INotebookTracker | null;
  private readonly _open: (path: string) => Promise<unknown>;
  private readonly _trans: TranslationBundle;
}

/** The path of a notebook's script; a kernel may know its notebook by a path outside of the server's root. */
function scriptPath(notebook: string): string {
  const path = notebook.startsWith('/') ? PathExt.basename(notebook) : notebook;
  return `${path.replace(/\.ipynb$/, '')}.py`;
}

function codeCells(panel: NotebookPanel): { id: string; source: string }[] {
  const cells = [...(panel.content.model?.cells ?? [])];
  return cells
    .filter(cell => cell.type === 'code')
    .map(cell => ({ id: cell.id, source: cell.sharedModel.getSource() }));
}
