/** Commands on a group or on a notebook: one row each, which makes the command and its place in the palette. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import type { GroupChoice } from './groupchoice';

export type CommandArgs = ReadonlyPartialJSONObject;

/** A command on a group, which its arguments name, the notebook has, or the user picks. */
export interface IGroupCommand {
  readonly id: string;
  readonly label: string;
  readonly caption?: string;
  readonly icon?: LabIcon;
  /** Whether the command can do something for a group; left out: for any. It is enabled where there is such a group. */
  readonly when?: (group: IGroup) => boolean;
  /** Further arguments beside the group: JSON types by name. */
  readonly args?: Readonly<Record<string, { readonly type: string; readonly description?: string }>>;
  /** Do it; an error that it throws is shown. */
  readonly act: (group: IGroup, args: CommandArgs) => Promise<void>;
}

/** A command on the notebook that is shown. */
export interface INotebookCommand {
  readonly id: string;
  readonly label: string | ((panel: NotebookPanel | null) => string);
  readonly caption: string;
  /** Whether the command can do something there; left out: in any notebook. */
  readonly when?: (panel: NotebookPanel) => boolean;
  readonly isToggled?: (panel: NotebookPanel) => boolean;
  readonly act: (panel: NotebookPanel) => Promise<void> | void;
}

/** Add the commands to the application and the palette, and enable them as groups change, or what is given beside them. */
export function addGroupCommands(
  app: JupyterFrontEnd,
  palette: ICommandPalette | null,
  groups: IDistGroups,
  choice: GroupChoice,
  rows: readonly IGroupCommand[],
  trans: TranslationBundle,
  changed: ISignal<unknown, void> = groups.changed
): void {
  const group = { type: 'string', description: trans.__('Name or id of the group') };
  for (const { id, label, caption, icon, when, args, act } of rows) {
    app.commands.addCommand(id, {
      // In a toolbar the icon is enough; the palette has no icons.
      label: given => (given.toolbar ? '' : label),
      caption,
      icon: given => (given.isPalette ? undefined : icon),
      describedBy: { args: { type: 'object', properties: { group, ...args } } },
      isEnabled: () => groups.groups.some(when ?? (() => true)),
      execute: async given => {
        const chosen = await choice.resolve(given.group, label);
        if (chosen) {
          await act(chosen, given).catch(notifyError);
        }
      }
    });
    palette?.addItem({ command: id, category: trans.__('Ranks') });
  }
  changed.connect(() => rows.forEach(({ id }) => app.commands.notifyCommandChanged(id)), app);
}

/** Add the commands to the application and the palette, and enable them again at each change. */
export function addNotebookCommands(
  app: JupyterFrontEnd,
  palette: ICommandPalette | null,
  tracker: INotebookTracker | null,
  rows: readonly INotebookCommand[],
  trans: TranslationBundle,
  changed?: ISignal<unknown, void>
): void {
  const shown = (): NotebookPanel | null => tracker?.currentWidget ?? null;
  const tells = (what: INotebookCommand['when']): boolean => shown() !== null && (what?.(shown()!) ?? true);
  for (const { id, label, caption, when, isToggled, act } of rows) {
    app.commands.addCommand(id, {
      label: typeof label === 'string' ? label : () => label(shown()),
      caption,
      describedBy: { args: { type: 'object', properties: {} } },
      isEnabled: () => tells(when),
      isToggled: isToggled && (() => tells(isToggled)),
      execute: async () => {
        const panel = shown();
        await (panel && act(panel));
      }
    });
    palette?.addItem({ command: id, category: trans.__('Ranks') });
  }
  changed?.connect(() => rows.forEach(({ id }) => app.commands.notifyCommandChanged(id)), app);
}
