import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { formatBytes, formatSeconds } from '../../model/format/quantities';
import { UndoModel } from '../../model/state/undo';
import { getNotebookTarget, keepsUndo, resolveTarget, setKeepsUndo, Target } from '../../model/targets/target';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistExecutions, IDistGroups, IDistService, IDistUndo } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../commands/groupchoice';
import {
  addGroupCommands,
  addNotebookCommands,
  type CommandArgs,
  type IGroupCommand,
  type INotebookCommand
} from '../commands/rows';

/** Undoes cells on ranks; the code for the dialog is loaded when it is first used. */
export const undoPlugin: JupyterFrontEndPlugin<IDistUndo> = {
  id: 'jupyter-dist:undo',
  description: 'Undoes cells on ranks, and knows which can be undone.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistExecutions],
  optional: [INotebookTracker, ICommandPalette, ITranslator],
  provides: IDistUndo,
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    executions: IDistExecutions,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): IDistUndo => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const model = new UndoModel(service, groups);
    const act =
      (what: 'undo' | 'redo'): Undo =>
      async (group, cell) => {
        try {
          const { UndoCommands } = await loaded(import(/* webpackChunkName: "undo" */ './undocommands'));
          await new UndoCommands(service, executions, trans)[what](group, cell);
        } catch (reason) {
          notifyError(reason);
        }
      };
    const undo = act('undo');
    const choice = new GroupChoice(groups, tracker, trans);
    addGroupCommands(app, palette, groups, choice, groupRows(model, undo, act('redo'), trans), trans, model.changed);
    addNotebookCommands(app, palette, tracker, notebookRows(model, groups, undo, trans), trans, model.changed);
    followNotebooks(model, groups, tracker);
    return model;
  }
};

type Undo = (group: IGroup, cell: string | null) => Promise<void>;

/** The commands that undo the last cell of a group, or one of its cells, and do an undone one again. */
function groupRows(model: IDistUndo, undo: Undo, redo: Undo, trans: TranslationBundle): IGroupCommand[] {
  const args = { cell: { type: 'string' } } as const;
  const cellOf = ({ cell }: CommandArgs): string | null => (typeof cell === 'string' ? cell : null);
  return [
    {
      id: CommandIDs.undo,
      label: trans.__('Undo the Last Cell on Ranks\u2026'),
      caption: trans.__('Give variables the values of before the last cell; it must have run with Keep Undo'),
      args,
      when: ({ id }) => model.cells(id).length > 0,
      act: (group, given) => undo(group, cellOf(given))
    },
    {
      id: CommandIDs.redo,
      label: trans.__('Redo the Undone Cell on Ranks'),
      caption: trans.__('Give variables what the undone cell had left in them; no code runs'),
      args,
      when: ({ id }) => model.undone(id).length > 0,
      act: (group, given) => redo(group, cellOf(given))
    }
  ];
}

/** The commands on a notebook: undo its active cell, and whether it keeps undo. */
function notebookRows(model: IDistUndo, groups: IDistGroups, undo: Undo, trans: TranslationBundle): INotebookCommand[] {
  const targetOf = ({ content }: NotebookPanel): Target => content.model && getNotebookTarget(content.model);
  /** The active cell, where it can be undone. */
  const active = ({ content }: NotebookPanel): { group: IGroup; id: string } | null => {
    const cell = content.activeCell?.model;
    const target = cell && content.model && resolveTarget(content.model, cell);
    const found = target ? groups.find(target.group) : null;
    const isKept = found !== null && model.cells(found.id).some(({ cell_id: id }) => id === cell?.id);
    return isKept && cell ? { group: found, id: cell.id } : null;
  };
  return [
    {
      id: CommandIDs.undoCell,
      label: trans.__('Undo Cell on Ranks\u2026'),
      caption: trans.__('Give variables the values of before this cell; it must have run with Keep Undo'),
      when: panel => active(panel) !== null,
      act: async panel => {
        const chosen = active(panel);
        await (chosen && undo(chosen.group, chosen.id));
      }
    },
    {
      id: CommandIDs.keepUndo,
      label: panel => keepLabel(groups.find((panel && targetOf(panel)?.group) ?? ''), model, trans),
      caption: trans.__(
        'Ranks keep the state before each cell of this notebook, so that it can be undone; this takes memory and time'
      ),
      when: panel => targetOf(panel) !== null,
      isToggled: ({ content }) => content.model !== null && keepsUndo(content.model),
      act: ({ content: { model: notebook } }) => {
        if (notebook) {
          setKeepsUndo(notebook, !keepsUndo(notebook));
        }
      }
    }
  ];
}

/** The label, with the cost for the last cell. */
function keepLabel(group: IGroup | null, model: IDistUndo, trans: TranslationBundle): string {
  const last = group && model.cells(group.id)[0];
  return last
    ? trans.__(
        'Keep Undo of Cells on Ranks (last cell: %1, %2)',
        formatBytes(last.cost.bytes),
        formatSeconds(last.cost.milliseconds / 1000)
      )
    : trans.__('Keep Undo of Cells on Ranks');
}

/** Follow the group of the notebook that is shown. */
function followNotebooks(model: UndoModel, groups: IDistGroups, tracker: INotebookTracker | null): void {
  const follow = (): void => {
    const notebook = tracker?.currentWidget?.content.model;
    const target = notebook && getNotebookTarget(notebook);
    const group = target ? groups.find(target.group) : null;
    if (group) {
      model.follow(group);
    }
  };
  tracker?.currentChanged.connect((_, panel) => {
    follow();
    // It may be the current one before its file is loaded.
    void panel?.context.ready.then(follow);
  }, model);
  groups.changed.connect(follow, model);
}
