import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookModel, INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { formatBytes, formatSeconds } from '../../model/format/quantities';
import { UndoModel } from '../../model/state/undo';
import { getNotebookTarget, keepsUndo, resolveTarget, setKeepsUndo } from '../../model/targets/target';
import { loaded } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistExecutions, IDistGroups, IDistService, IDistUndo } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../commands/groupchoice';

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
    const options = {
      ...undoOptions(model, groups, choice, undo, trans),
      ...redoOptions(model, groups, choice, act('redo'), trans),
      ...notebookOptions(model, groups, tracker, undo, trans)
    };
    for (const [command, option] of Object.entries(options)) {
      app.commands.addCommand(command, option);
      palette?.addItem({ command, category: trans.__('Ranks') });
    }
    followNotebooks(model, groups, tracker);
    model.changed.connect(() => {
      Object.keys(options).forEach(command => app.commands.notifyCommandChanged(command));
    }, app);
    return model;
  }
};

type Options = Record<string, CommandRegistry.ICommandOptions>;
type Undo = (group: IGroup, cell: string | null) => Promise<void>;

/** The command that undoes the last cell of a group, or one of its cells. */
function undoOptions(
  model: IDistUndo,
  groups: IDistGroups,
  choice: GroupChoice,
  undo: Undo,
  trans: TranslationBundle
): Options {
  const label = trans.__('Undo the Last Cell on Ranks\u2026');
  const properties = { group: { type: 'string' }, cell: { type: 'string' } } as const;
  return {
    [CommandIDs.undo]: {
      label,
      caption: trans.__('Give variables the values of before the last cell; it must have run with Keep Undo'),
      describedBy: { args: { type: 'object', properties } },
      isEnabled: args => typeof args.cell === 'string' || groups.groups.some(({ id }) => model.cells(id).length > 0),
      execute: async args => {
        const group = await choice.resolve(args.group, label);
        if (group) {
          await undo(group, typeof args.cell === 'string' ? args.cell : null);
        }
      }
    }
  };
}

/** The command that does an undone cell of a group again, by default the next one. */
function redoOptions(
  model: IDistUndo,
  groups: IDistGroups,
  choice: GroupChoice,
  redo: Undo,
  trans: TranslationBundle
): Options {
  const label = trans.__('Redo the Undone Cell on Ranks');
  const properties = { group: { type: 'string' }, cell: { type: 'string' } } as const;
  return {
    [CommandIDs.redo]: {
      label,
      caption: trans.__('Give variables what the undone cell had left in them; no code runs'),
      describedBy: { args: { type: 'object', properties } },
      isEnabled: args => typeof args.cell === 'string' || groups.groups.some(({ id }) => model.undone(id).length > 0),
      execute: async args => {
        const group = await choice.resolve(args.group, label);
        if (group) {
          await redo(group, typeof args.cell === 'string' ? args.cell : null);
        }
      }
    }
  };
}

/** The commands on the current notebook: undo its active cell, and whether it keeps undo. */
function notebookOptions(
  model: IDistUndo,
  groups: IDistGroups,
  tracker: INotebookTracker | null,
  undo: Undo,
  trans: TranslationBundle
): Options {
  const describedBy = { args: { type: 'object', properties: {} } } as const;
  const notebook = (): INotebookModel | null => tracker?.currentWidget?.content.model ?? null;
  const group = (): IGroup | null => {
    const target = notebook() && getNotebookTarget(notebook()!);
    return target ? groups.find(target.group) : null;
  };
  /** The active cell, where it can be undone. */
  const active = (): { group: IGroup; id: string } | null => {
    const cell = tracker?.activeCell?.model;
    const target = cell && notebook() && resolveTarget(notebook()!, cell);
    const found = target ? groups.find(target.group) : null;
    const isKept = found !== null && model.cells(found.id).some(({ cell_id: id }) => id === cell?.id);
    return isKept && cell ? { group: found, id: cell.id } : null;
  };
  return {
    [CommandIDs.undoCell]: {
      label: trans.__('Undo Cell on Ranks\u2026'),
      caption: trans.__('Give variables the values of before this cell; it must have run with Keep Undo'),
      describedBy,
      isEnabled: () => active() !== null,
      execute: async () => {
        const chosen = active();
        if (chosen) {
          await undo(chosen.group, chosen.id);
        }
      }
    },
    [CommandIDs.keepUndo]: {
      label: () => keepLabel(group(), model, trans),
      caption: trans.__(
        'Ranks keep the state before each cell of this notebook, so that it can be undone; this takes memory and time'
      ),
      describedBy,
      isEnabled: () => notebook() !== null && getNotebookTarget(notebook()!) !== null,
      isToggled: () => notebook() !== null && keepsUndo(notebook()!),
      execute: () => {
        const current = notebook();
        if (current) {
          setKeepsUndo(current, !keepsUndo(current));
        }
      }
    }
  };
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
