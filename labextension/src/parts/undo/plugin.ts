import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { formatBytes, formatSeconds } from '../../model/format/quantities';

import { getNotebookTarget, resolveTarget, Target } from '../../model/targets/target';
import { addRunOption, hasRunOption, setRunOption } from '../../model/targets/runoptions';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { IDistExecutions, IDistGroups, IDistHeaderNotes, IDistService } from '../../tokens';
import { addStateItem, hasStarted } from '../../plugins/commands/groupmenu';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../../plugins/commands/groupchoice';
import {
  addGroupCommands,
  addNotebookCommands,
  type CommandArgs,
  type IGroupCommand,
  type INotebookCommand
} from '../../plugins/commands/rows';
import { addReplaceChoice } from '../../widgets/starting/beginnings';
import { takenBack } from './takenback';
import { UndoModel } from './undomodel';
import { UndoNote } from './undonote';
import { IDistUndo } from './tokens';

/** In the metadata of a notebook, and of the requests of its cells: ranks keep the state before each. */
const KEEP = 'keep_undo';

const CommandIDs = {
  /** Undo a cell on ranks, after a dialog; args: `{group?, cell?: id of a notebook's cell}`, by default the last cell. */
  undo: 'jupyter-dist:undo',
  /** Give variables what an undone cell had left in them; args: `{group?, cell?}`, by default the next undone cell. */
  redo: 'jupyter-dist:redo',
  /** Undo the last run of the active cell of the current notebook. */
  undoCell: 'jupyter-dist:undo-cell',
  /** Whether ranks keep what is needed to undo the cells of the current notebook. */
  keepUndo: 'jupyter-dist:keep-undo'
} as const;

/** Undoes cells on ranks; the code for the dialog is loaded when it is first used. */
const undoPlugin: JupyterFrontEndPlugin<IDistUndo> = {
  id: 'jupyter-dist:undo',
  description: 'Undoes cells on ranks, and knows which can be undone.',
  autoStart: true,
  requires: [IDistService, IDistGroups, IDistExecutions, IDistHeaderNotes],
  optional: [INotebookTracker, ICommandPalette, ITranslator],
  provides: IDistUndo,
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    executions: IDistExecutions,
    notes: IDistHeaderNotes,
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
    addStateItem({ command: CommandIDs.undo, rank: 20, isEnabled: hasStarted });
    addStateItem({ command: CommandIDs.redo, rank: 21, isEnabled: hasStarted });
    addRunOption(KEEP);
    addReplaceChoice(10, group => takenBack(service, group, trans));
    notes.add({
      id: undoPlugin.id,
      rank: 80,
      create: context =>
        new UndoNote({
          ...context,
          trans,
          undo: model,
          undoCell: (group, cell) => void app.commands.execute(CommandIDs.undo, { group, cell }),
          redoCell: (group, cell) => void app.commands.execute(CommandIDs.redo, { group, cell })
        })
    });
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
      isToggled: ({ content }) => content.model !== null && hasRunOption(content.model, KEEP),
      act: ({ content: { model: notebook } }) => {
        if (notebook) {
          setRunOption(notebook, KEEP, !hasRunOption(notebook, KEEP));
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

export default undoPlugin;
