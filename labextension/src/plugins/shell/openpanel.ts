/** Adds the panel of a group to the main area, and the command that opens it. */
import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../commands/groupchoice';

const ARGS = { type: 'object', properties: { group: { type: 'string' }, restore: { type: 'boolean' } } } as const;

export interface IPanelCommand<T> {
  command: string;
  label: string;
  /** Of the tracker: layouts are stored by it. */
  namespace: string;
  create(group: IGroup): Promise<T>;
}

export interface IPanelPlaces {
  app: JupyterFrontEnd;
  groups: IDistGroups;
  notebooks: INotebookTracker | null;
  restorer: ILayoutRestorer | null;
  palette: ICommandPalette | null;
  trans: TranslationBundle;
}

/** Add a command that shows the panel of a group, of which there is one; it is there again after a reload. */
export function addPanelCommand<T extends Widget & { readonly group: string }>(
  { app, groups, notebooks, restorer, palette, trans }: IPanelPlaces,
  { command, label, namespace, create }: IPanelCommand<T>
): void {
  const tracker = new WidgetTracker<T>({ namespace });
  const choice = new GroupChoice(groups, notebooks, trans);
  const open = async (reference: unknown, isRestored: boolean): Promise<void> => {
    const group = await choice.resolve(reference, label);
    if (!group) {
      return;
    }
    let panel = tracker.find(one => one.group === group.id);
    if (!panel) {
      panel = await create(group);
      await addPanel(app, tracker, notebooks, panel, isRestored);
    }
    if (!isRestored) {
      app.shell.activateById(panel.id);
    }
  };
  app.commands.addCommand(command, {
    label,
    describedBy: { args: ARGS },
    isEnabled: () => groups.groups.length > 0,
    execute: async ({ group, restore }) => {
      await (restore ? groups.ready : undefined);
      await open(group, restore === true).catch(notifyError);
    }
  });
  palette?.addItem({ command, category: trans.__('Ranks') });
  void restorer?.restore(tracker, {
    command,
    args: ({ group }) => ({ group, restore: true }),
    name: ({ group }) => group
  });
}

/** Below the current notebook, or where the restored layout has it. */
export async function addPanel<T extends Widget>(
  app: JupyterFrontEnd,
  tracker: WidgetTracker<T>,
  notebooks: INotebookTracker | null,
  panel: T,
  isRestored: boolean
): Promise<void> {
  await tracker.add(panel);
  const beside = notebooks?.currentWidget;
  const below = beside?.isVisible ? ({ mode: 'split-bottom', ref: beside.id } as const) : undefined;
  app.shell.add(panel, 'main', isRestored ? { activate: false } : below);
}
