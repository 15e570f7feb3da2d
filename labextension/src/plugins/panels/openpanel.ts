/** Adds the panel of a group to the main area, and the command that opens it. */
import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { GroupChoice } from '../commands/groupchoice';
import { addPanelItem, IPanelItem } from '../commands/groupmenu';

const ARGS = {
  type: 'object',
  properties: { group: { type: 'string' }, execution: { type: 'string' }, restore: { type: 'boolean' } }
} as const;

/** Panels share one pane: this class marks them. */
const IN_PANE = 'jpd-mod-inPane';

export interface IPanelCommand<T> extends IPanelItem {
  label: string;
  /** Of the tracker: layouts are stored by it. */
  namespace: string;
  create(group: IGroup): Promise<T>;
  /** Called with the command's arguments each time it has opened or found the panel. */
  opened?(panel: T, args: ReadonlyPartialJSONObject): void;
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
  { command, label, brief, namespace, rank, create, opened }: IPanelCommand<T>
): void {
  addPanelItem({ command, rank, brief });
  const tracker = new WidgetTracker<T>({ namespace });
  const choice = new GroupChoice(groups, notebooks, trans);
  const open = async (args: ReadonlyPartialJSONObject, isRestored: boolean): Promise<void> => {
    const group = await choice.resolve(args.group, label);
    if (!group) {
      return;
    }
    let panel = tracker.find(one => one.group === group.id);
    if (!panel) {
      panel = await create(group);
      await addPanel(app, tracker, notebooks, panel, isRestored);
    }
    opened?.(panel, args);
    if (!isRestored) {
      app.shell.activateById(panel.id);
    }
  };
  app.commands.addCommand(command, {
    label,
    describedBy: { args: ARGS },
    isEnabled: () => groups.groups.length > 0,
    execute: async args => {
      const { restore } = args;
      await (restore ? groups.ready : undefined);
      await open(args, restore === true).catch(notifyError);
    }
  });
  palette?.addItem({ command, category: trans.__('Ranks') });
  void restorer?.restore(tracker, {
    command,
    args: ({ group }) => ({ group, restore: true }),
    name: ({ group }) => group
  });
}

/** In the pane of the other panels, else below the current notebook, or where the restored layout has it. */
export async function addPanel<T extends Widget>(
  app: JupyterFrontEnd,
  tracker: WidgetTracker<T>,
  notebooks: INotebookTracker | null,
  panel: T,
  isRestored: boolean
): Promise<void> {
  const inPane = [...app.shell.widgets('main')].filter(widget => widget.hasClass(IN_PANE)).pop();
  panel.addClass(IN_PANE);
  await tracker.add(panel);
  leaveOnEscape(app, notebooks, panel);
  const beside = notebooks?.currentWidget;
  const place = inPane
    ? ({ mode: 'tab-after', ref: inPane.id } as const)
    : beside?.isVisible
      ? ({ mode: 'split-bottom', ref: beside.id } as const)
      : undefined;
  app.shell.add(panel, 'main', isRestored ? { activate: false } : place);
}

/** Escape goes back to the notebook, from where nothing else takes it. */
function leaveOnEscape(app: JupyterFrontEnd, notebooks: INotebookTracker | null, panel: Widget): void {
  let isCleared = false;
  // A field with text is cleared first; by the time the key comes up to the panel, it is.
  const onCapture = ({ target }: KeyboardEvent): void => {
    isCleared = target instanceof HTMLInputElement && target.type !== 'checkbox' && target.value !== '';
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const notebook = notebooks?.currentWidget;
    if (event.key === 'Escape' && !event.defaultPrevented && !isCleared && notebook && !notebook.isDisposed) {
      event.preventDefault();
      app.shell.activateById(notebook.id);
      notebook.content.activate();
    }
  };
  panel.node.addEventListener('keydown', onCapture, true);
  panel.node.addEventListener('keydown', onKeyDown);
}
