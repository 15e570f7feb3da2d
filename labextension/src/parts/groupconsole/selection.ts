/** Runs the selected text of a notebook or a file in a console on ranks. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { InputDialog, WidgetTracker } from '@jupyterlab/apputils';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Widget } from '@lumino/widgets';
import { parseRanks } from '../../model/format/ranks';
import { getNotebookTarget, resolveTarget } from '../../model/targets/target';
import type { DistError } from '../../services/errors';
import type { IGroup } from '../../services/protocol';
import { CommandIDs, IDistGroups } from '../../tokens';
import type { GroupConsole } from './console';
import { notifyError } from '../../widgets/base/errornote';
import type { GroupChoice } from '../../plugins/commands/groupchoice';

export class SelectionRunner {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _consoles: WidgetTracker<GroupConsole>,
    private readonly _notebooks: INotebookTracker | null,
    private readonly _choice: GroupChoice,
    private readonly _groups: IDistGroups,
    private readonly _trans: TranslationBundle
  ) {}

  options(command: typeof CommandIDs.runSelection | typeof CommandIDs.runSelectionOn): CommandRegistry.ICommandOptions {
    const trans = this._trans;
    const asks = command === CommandIDs.runSelectionOn;
    return {
      label: asks
        ? trans.__('Run Selected Text or Current Line on Ranks\u2026')
        : trans.__('Run Selected Text or Current Line on Ranks'),
      caption: asks
        ? trans.__('Enter the ranks that run it in a console of their group')
        : trans.__('Run it in a console, on the ranks that the notebook or the console has chosen'),
      describedBy: {
        args: { type: 'object', properties: { ranks: { type: 'string' }, isPalette: { type: 'boolean' } } }
      },
      isEnabled: () => this._editor() !== null && this._groups.groups.length > 0,
      isVisible: () => this._groups.groups.length > 0,
      execute: ({ ranks }) => this._run(asks, typeof ranks === 'string' ? ranks : undefined).catch(notifyError)
    };
  }

  private async _run(asks: boolean, given: string | undefined): Promise<void> {
    const editor = this._editor();
    const group = editor && (await this._group());
    if (!group) {
      return;
    }
    const ranks = asks ? await this._askRanks(group) : (given ?? this._ranksOfCell());
    const code = ranks === null ? '' : takeCode(editor);
    if (code.trim()) {
      const panel = await this._console(group);
      await panel?.run(code, ranks ?? undefined);
    }
  }

  /** The group of the notebook, of a console, or of the user's choice. */
  private async _group(): Promise<IGroup | null> {
    const known = this._groupOfNotebook() ?? this._current(null)?.target.group;
    return known ?? this._choice.resolve(undefined, this._trans.__('Run on Ranks'));
  }

  private async _console(group: IGroup): Promise<GroupConsole | undefined> {
    const args = { group: group.id, activate: false };
    return this._current(group) ?? this._app.commands.execute(CommandIDs.openConsole, args);
  }

  /** The expression that the user enters; null: nothing is to run. */
  private async _askRanks(group: IGroup): Promise<string | null> {
    const trans = this._trans;
    const { button, value } = await InputDialog.getText({
      title: trans.__('Run on ranks of %1', group.name),
      label: trans.__('Ranks, for example 2 or 0-3,7 or all'),
      text: this._last.get(group.name) ?? '0',
      okLabel: trans.__('Run')
    });
    if (!button.accept || !value?.trim()) {
      return null;
    }
    try {
      parseRanks(value, group);
    } catch (reason) {
      notifyError(reason as DistError);
      return null;
    }
    this._last.set(group.name, value.trim());
    return value.trim();
  }

  /** The console of a group that was used last; without a group, of any. */
  private _current(group: IGroup | null): GroupConsole | null {
    const { currentWidget: current } = this._consoles;
    const isOf = (panel: GroupConsole): boolean => group === null || panel.target.group?.id === group.id;
    return current && isOf(current) ? current : (this._consoles.find(isOf) ?? null);
  }

  private _groupOfNotebook(): IGroup | null {
    const panel = this._notebooks?.currentWidget;
    const model = panel && panel === this._app.shell.currentWidget ? panel.content.model : null;
    const target = model && getNotebookTarget(model);
    return target ? this._groups.find(target.group) : null;
  }

  /** The ranks of the active cell, if the current widget is a notebook on ranks; undefined: the console's. */
  private _ranksOfCell(): string | undefined {
    const panel = this._notebooks?.currentWidget;
    const { model, activeCell } = panel?.content ?? {};
    const isCurrent = panel === this._app.shell.currentWidget;
    return isCurrent && model && activeCell ? resolveTarget(model, activeCell.model)?.ranks : undefined;
  }

  /** The editor of the current notebook's active cell, or of the current file. */
  private _editor(): CodeEditor.IEditor | null {
    const widget = this._app.shell.currentWidget as (Widget & IHasEditor) | null;
    return widget?.content?.activeCell?.editor ?? widget?.content?.editor ?? null;
  }

  /** The expression that was entered last, by the name of the group. */
  private readonly _last = new Map<string, string>();
}

/** What documents with code have: notebooks, and files of text. */
interface IHasEditor {
  content?: { activeCell?: { editor: CodeEditor.IEditor | null } | null; editor?: CodeEditor.IEditor };
}

/** The selected text, or the current line; the cursor goes to the next one, as with JupyterLab's own command. */
function takeCode(editor: CodeEditor.IEditor): string {
  const { start, end } = editor.getSelection();
  const source = editor.model.sharedModel.getSource();
  const [from, to] = [editor.getOffsetAt(start), editor.getOffsetAt(end)].sort((a, b) => a - b);
  if (from !== to) {
    // A selection that begins in the indentation of a line includes the whole indentation.
    const line = source.lastIndexOf('\n', from - 1) + 1;
    return dedented(source.slice(source.slice(line, from).trim() ? from : line, to));
  }
  const { line } = editor.getCursorPosition();
  const code = editor.getLine(line) ?? '';
  if (line + 1 < editor.lineCount) {
    editor.setCursorPosition({ line: line + 1, column: 0 });
  }
  return dedented(code);
}

/** Code of a block can run by itself. */
function dedented(code: string): string {
  const lines = code.split('\n');
  const indents = lines.filter(line => line.trim()).map(line => line.length - line.trimStart().length);
  const common = indents.length > 0 ? Math.min(...indents) : 0;
  return lines.map(line => line.slice(Math.min(common, line.length - line.trimStart().length))).join('\n');
}
